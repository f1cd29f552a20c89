"""Commands of people and servers."""
