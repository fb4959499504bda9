"""Secure aggregation: the server learns the sum of the clients' summaries, and nothing else (experimental).

Nobody outside this project has reviewed the protocol or its code yet. Until that has happened, do not rely on it alone
where a summary of one client must not be seen.

The protocol is that of Bonawitz et al. (2017) against a server that may lie, with a plan file that all clients have
compared. The plan file names a signature key of every client, and every answer is signed. All numbers are integers
modulo 2⁶⁴, so that the sum is exact. With n clients, the threshold t is more than n/2 (by default more than 2n/3).

====== ================================== ==================================================================
round  the server asks with               a client answers with
====== ================================== ==================================================================
1      the terms: plan, threshold, groups two X25519 public keys, made for this session
2      the roster of all keys             its mask seed and its masking key, split by Shamir's scheme into n
                                          shares of which t recover them; each share sealed (AES-256-GCM)
3      the sealed shares                  its vector + own mask ± one mask for every other client
4      the list of survivors              its signature of that list; it signs one list per session
5      the list with at least t           its shares of the survivors' mask seeds, and of the masking keys of
       signatures                         those that left; never both of one client
====== ================================== ==================================================================

After the sum of summaries, its clients may add answers to requests about residuals in the same way: the request is in
the terms, which all clients sign, and each request has a session of its own.

Masks are AES-256-CTR streams under keys from HKDF-SHA256, which are bound to the session, the purpose and the names.
The session is the digest of the roster. Own masks hide a vector that arrives late; pair masks cancel in the sum.

What holds: a server that follows the rounds learns the sum over the survivors and nothing else about an honest client,
even if t − 1 clients collude with it. If the server lies, this holds with fewer than 2t − n colluding clients. What
does not hold: a client can put wrong numbers into the sum. The sum is validated as a summary is, but nobody finds out
which client did it.

- `secret_sharing`: Shamir's secret sharing;
- `masking`: key agreement, key derivation, masks, sealed boxes;
- `terms`, `messages`: the messages of the five rounds;
- `codec`: reads the messages, and refuses any that are not in canonical form;
- `client`, `client_state`, `client_states`: a client, the file that keeps its state, and those of all its sessions;
- `server`, `session`: the server, and a whole session that survives restarts.

References
----------
K. Bonawitz et al.: Practical Secure Aggregation for Privacy-Preserving Machine Learning. CCS 2017.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.privacy.secure_aggregation.client import ResidualPart, SecAggClient
    from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
    from fedcdh.privacy.secure_aggregation.client_states import ClientStates
    from fedcdh.privacy.secure_aggregation.secret_sharing import join_shares, split_secret
    from fedcdh.privacy.secure_aggregation.server import SecAggServer
    from fedcdh.privacy.secure_aggregation.session import SessionFolder, SummedAnswers, run_answer_session, run_session
    from fedcdh.privacy.secure_aggregation.terms import SecAggTerms

__all__ = [
    "ClientStateFile",
    "ClientStates",
    "ResidualPart",
    "SecAggClient",
    "SecAggServer",
    "SecAggTerms",
    "SessionFolder",
    "SummedAnswers",
    "join_shares",
    "run_answer_session",
    "run_session",
    "split_secret",
]

_EXPORTS = {
    "ClientStateFile": "fedcdh.privacy.secure_aggregation.client_state",
    "ClientStates": "fedcdh.privacy.secure_aggregation.client_states",
    "ResidualPart": "fedcdh.privacy.secure_aggregation.client",
    "SecAggClient": "fedcdh.privacy.secure_aggregation.client",
    "SecAggServer": "fedcdh.privacy.secure_aggregation.server",
    "SecAggTerms": "fedcdh.privacy.secure_aggregation.terms",
    "SessionFolder": "fedcdh.privacy.secure_aggregation.session",
    "SummedAnswers": "fedcdh.privacy.secure_aggregation.session",
    "join_shares": "fedcdh.privacy.secure_aggregation.secret_sharing",
    "run_answer_session": "fedcdh.privacy.secure_aggregation.session",
    "run_session": "fedcdh.privacy.secure_aggregation.session",
    "split_secret": "fedcdh.privacy.secure_aggregation.secret_sharing",
}
__getattr__, __dir__ = attach(__name__, _EXPORTS)
