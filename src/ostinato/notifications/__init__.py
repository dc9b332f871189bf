"""Telling people: deliveries that were written with what they tell are claimed, put into words and sent from here."""
