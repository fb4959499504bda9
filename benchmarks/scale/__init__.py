"""How cost grows with rows, variables, clients and features, and what others take: the page docs/scale.md."""
