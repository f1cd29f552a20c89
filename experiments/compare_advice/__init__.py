"""How good is the advice of `corank compare` when few queries are judged?"""
