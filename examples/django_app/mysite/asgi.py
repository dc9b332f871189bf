# mysite/asgi.py: uvicorn mysite.asgi:application
import os

from django.core.asgi import get_asgi_application

from ostinato.integrations.django import mount

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
application = mount(get_asgi_application(), "/jobs")
