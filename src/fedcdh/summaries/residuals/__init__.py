"""Sums of residuals: a second, smaller message that decides directions.

Gaussian noise leaves the direction of many edges open. The shape of the noise decides it, and whether the size of the
noise depends on the causes. Both are seen in the residuals of regressions, which a summary does not hold.

- `functions`: the bounded functions of a residual;
- `request`: requests (`ResidualRequest`) and answers (`ResidualSums`);
- `answer`: a client's answer, one more pass over its rows;
- `products`: the product of two parents less its regression on them;
- `rounding`: how coarsely the sums are rounded;
- `asked`: what identifies a query, so that nothing is asked twice;
- `vectors`: an answer as one vector of integers, for secure aggregation.
"""

from fedcdh.summaries.residuals.answer import answer_residuals
from fedcdh.summaries.residuals.asked import AskedQuery, check_residuals, identify_queries, restrict_request
from fedcdh.summaries.residuals.request import (
    PRODUCTS,
    SHAPE,
    SIZE,
    TIES,
    Coordinates,
    ResidualQuery,
    ResidualRequest,
    ResidualSums,
    add_answers,
)
from fedcdh.summaries.residuals.vectors import answer_length, decode_answers, encode_answers

__all__ = [
    "PRODUCTS",
    "SHAPE",
    "SIZE",
    "TIES",
    "AskedQuery",
    "Coordinates",
    "ResidualQuery",
    "ResidualRequest",
    "ResidualSums",
    "add_answers",
    "answer_length",
    "answer_residuals",
    "check_residuals",
    "decode_answers",
    "encode_answers",
    "identify_queries",
    "restrict_request",
]
