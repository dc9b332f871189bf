# flask_app.py: flask --app flask_app:site run, or gunicorn flask_app:site
from flask import Flask, current_app, request

from ostinato import Every, NotFound, Ostinato

jobs = Ostinato("sqlite:///flask.db")
site = Flask(__name__)
site.config["SENDER"] = "shop@example.org"
jobs.init_flask(site)


@jobs.task("refresh", schedule=Every(minutes=5))
def refresh() -> str:
    return "fresh"


@jobs.task
def send_mail(to: str) -> str:
    return f"sent to {to} by {current_app.config['SENDER']}"


@site.post("/signup")
def signup() -> dict[str, int]:
    return {"run": send_mail.enqueue(request.args["to"]).id}


@site.get("/runs/<int:number>")
def show(number: int) -> dict[str, object]:
    run = jobs.runs.get(number)
    return {"state": run.state, "result": run.result}


@site.errorhandler(NotFound)
def not_found(error: NotFound) -> tuple[dict[str, str], int]:
    return {"detail": str(error)}, 404
