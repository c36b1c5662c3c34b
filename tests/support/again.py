"""The tests of one module as those of another, which runs them in other surroundings."""


def all_of(module):
    """globals().update(all_of(module)): as a star would import it, and what looks for names knows where."""
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}
