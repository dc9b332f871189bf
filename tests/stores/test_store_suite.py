"""Every rule of the store suite, on each database."""

from ostinato.testing.store_suite import *  # noqa: F403
