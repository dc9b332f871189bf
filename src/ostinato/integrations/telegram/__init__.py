"""The Telegram bot: a door like REST and the command line, for people who are not at their desk.

`bot.py` is its life on one node of all, `poller.py` asks Telegram, `handler.py` decides who may and what it is: a
command (`commands.py`, `schedule_commands.py`), a button (`buttons.py`), or a text for the session of its chat
(`conversation.py`).
"""
