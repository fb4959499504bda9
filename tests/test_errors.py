"""Errors: one family, each with its exit code."""

from fedcdh.errors import FedCDHError, GraphError, KnowledgeError, NoConsistentExtensionError


def test_every_refusal_is_one_family():
    assert issubclass(NoConsistentExtensionError, GraphError)
    assert issubclass(GraphError, FedCDHError)
    assert issubclass(KnowledgeError, ValueError)
    assert not issubclass(GraphError, ValueError)
