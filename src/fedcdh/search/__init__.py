"""Search for graphs: skeleton, colliders, orientation, exact and order search. It sees names and answers, never data."""
