"""The files that travel: profiles, plans, summaries and signatures, as bytes that can be trusted or are refused."""
