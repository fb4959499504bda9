"""Messages between sites and coordinator: files as bytes that are either valid or refused.

- `profile_file`: the profile of a client, before there is a plan;
- `study_file`: the plan that every site gets, with knowledge, keys and digests of the profiles;
- `summary_file`, `summary_header`: the summary of a client, or a bootstrap replicate of it;
- `aggregate_file`: a sum of summaries;
- `round_files`, `answer_file`: requests and answers of further rounds;
- `container`: the layout that answers and sums share;
- `signing`: keys and detached signatures;
- `envelope`: the messages of an online study.

One content has one spelling: a reader computes the one way in which the content can be written, and refuses any other.
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.messages.aggregate_file import AggregateMessage as AggregateMessage
    from fedcdh.messages.aggregate_file import pack_aggregate as pack_aggregate
    from fedcdh.messages.aggregate_file import unpack_aggregate as unpack_aggregate
    from fedcdh.messages.answer_file import AnswerMessage as AnswerMessage
    from fedcdh.messages.answer_file import pack_answer as pack_answer
    from fedcdh.messages.answer_file import unpack_answer as unpack_answer
    from fedcdh.messages.envelope import Envelope as Envelope
    from fedcdh.messages.profile_file import ProfileMessage as ProfileMessage
    from fedcdh.messages.profile_file import profile_from_json as profile_from_json
    from fedcdh.messages.profile_file import profile_to_json as profile_to_json
    from fedcdh.messages.round_files import request_from_json as request_from_json
    from fedcdh.messages.round_files import request_to_json as request_to_json
    from fedcdh.messages.signing import SigningKey as SigningKey
    from fedcdh.messages.signing import key_fingerprint as key_fingerprint
    from fedcdh.messages.signing import sign as sign
    from fedcdh.messages.signing import verify as verify
    from fedcdh.messages.study_file import Study as Study
    from fedcdh.messages.summary_file import SummaryMessage as SummaryMessage
    from fedcdh.messages.summary_file import pack_summary as pack_summary
    from fedcdh.messages.summary_file import read_summary_header as read_summary_header
    from fedcdh.messages.summary_file import summary_file_size as summary_file_size
    from fedcdh.messages.summary_file import unpack_summary as unpack_summary
    from fedcdh.messages.summary_header import SummaryHeader as SummaryHeader

__all__ = [
    "AggregateMessage",
    "AnswerMessage",
    "Envelope",
    "ProfileMessage",
    "SigningKey",
    "Study",
    "SummaryHeader",
    "SummaryMessage",
    "key_fingerprint",
    "pack_aggregate",
    "pack_answer",
    "pack_summary",
    "profile_from_json",
    "profile_to_json",
    "read_summary_header",
    "request_from_json",
    "request_to_json",
    "sign",
    "summary_file_size",
    "unpack_aggregate",
    "unpack_answer",
    "unpack_summary",
    "verify",
]

_HOMES = {
    "AggregateMessage": "fedcdh.messages.aggregate_file",
    "AnswerMessage": "fedcdh.messages.answer_file",
    "Envelope": "fedcdh.messages.envelope",
    "ProfileMessage": "fedcdh.messages.profile_file",
    "SigningKey": "fedcdh.messages.signing",
    "Study": "fedcdh.messages.study_file",
    "SummaryHeader": "fedcdh.messages.summary_header",
    "SummaryMessage": "fedcdh.messages.summary_file",
    "key_fingerprint": "fedcdh.messages.signing",
    "pack_aggregate": "fedcdh.messages.aggregate_file",
    "pack_answer": "fedcdh.messages.answer_file",
    "pack_summary": "fedcdh.messages.summary_file",
    "profile_from_json": "fedcdh.messages.profile_file",
    "profile_to_json": "fedcdh.messages.profile_file",
    "read_summary_header": "fedcdh.messages.summary_file",
    "request_from_json": "fedcdh.messages.round_files",
    "request_to_json": "fedcdh.messages.round_files",
    "sign": "fedcdh.messages.signing",
    "summary_file_size": "fedcdh.messages.summary_file",
    "unpack_aggregate": "fedcdh.messages.aggregate_file",
    "unpack_answer": "fedcdh.messages.answer_file",
    "unpack_summary": "fedcdh.messages.summary_file",
    "verify": "fedcdh.messages.signing",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
