"""Statistical disclosure control: the policy of a site and the rules that a release has to pass."""
