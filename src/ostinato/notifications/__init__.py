"""Telling people: what is owed to channels is sent from here."""
