"""Web pages for people who judge: `corank lab`."""
