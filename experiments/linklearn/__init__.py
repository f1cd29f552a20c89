"""Learning a similarity from links, and searching other collections with it: Grangier and Bengio's experiment."""
