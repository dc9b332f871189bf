"""Run by Django's own test runner inside the example: who somebody is on the page that a project mounts, and by which
names it is asked for.

`test_inside.py` copies this file into the project, once on SQLite and once on PostgreSQL.
"""

from __future__ import annotations

from unittest.mock import patch

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.test import TestCase, TransactionTestCase, override_settings
from httpx import ASGITransport, AsyncClient
from starlette.requests import HTTPConnection

from ostinato import Identity
from ostinato.integrations.django import jobs
from ostinato.integrations.django.asgi import login_url, mount, staff
from ostinato.testing import rehearse


class LoginTests(TestCase):
    """Who somebody is on the page."""

    def test_superusers_are_admins_staff_are_viewers_and_operators_have_a_permission(self) -> None:
        ada = User.objects.create_user("ada", is_staff=True)
        eve = User.objects.create_user("eve", is_staff=True)
        eve.user_permissions.add(Permission.objects.get(codename="operate"))
        boss = User.objects.create_superuser("boss")
        customer = User.objects.create_user("customer")
        left = User.objects.create_superuser("left", is_active=False)
        for user, role in ((ada, "viewer"), (eve, "operator"), (boss, "admin"), (customer, None), (left, None)):
            self.client.force_login(user)
            found = staff(self.request(self.client.cookies["sessionid"].value))
            self.assertEqual(None if found is None else (found.name, found.role), role and (user.username, role))
        self.assertIsNone(staff(self.request("made up")))
        self.assertIsNone(staff(HTTPConnection({"type": "http", "headers": []})))

    def test_the_way_to_the_login_has_the_prefix_of_the_site_and_joins_a_query(self) -> None:
        self.assertEqual(login_url(""), "/admin/login/?next={next}")
        self.assertEqual(login_url("/shop"), "/shop/admin/login/?next={next}")
        with override_settings(ROOT_URLCONF="shop.tests_without_admin", LOGIN_URL="/login?by=mail"):
            self.assertEqual(login_url("/shop"), "/login?by=mail&next={next}")

    def test_a_project_without_users_is_told_so_where_it_mounts_the_page(self) -> None:
        with patch.object(apps, "is_installed", return_value=False):
            mount(get_asgi_application(), "/jobs", who=lambda _: None)
            with self.assertRaisesMessage(ImproperlyConfigured, "'django.contrib.auth' is not in INSTALLED_APPS"):
                mount(get_asgi_application(), "/jobs")

    def test_who_asks_keeps_their_session_when_the_secret_key_is_rotated(self) -> None:
        self.client.force_login(User.objects.create_superuser("boss"))
        session = self.client.cookies["sessionid"].value
        with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
            found = staff(self.request(session))
            self.assertEqual(found and found.name, "boss")
            self.assertTrue(Session.objects.filter(session_key=session).exists())
        with override_settings(SECRET_KEY="new"):
            self.assertIsNone(staff(self.request(session)))
            self.assertTrue(Session.objects.filter(session_key=session).exists())

    def request(self, session: str) -> HTTPConnection:
        return HTTPConnection({"type": "http", "headers": [(b"cookie", f"sessionid={session}".encode())]})


class HostTests(TransactionTestCase):
    """The names by which the mounted page is asked for are those of the project."""

    async def asked(self, host: str, **headers: str) -> int:
        page = mount(get_asgi_application(), "/jobs", who=lambda _: Identity("boss", "admin"))
        sent = {"Host": host, "X-Origin-Key": "host", **headers}
        async with AsyncClient(transport=ASGITransport(page), base_url="http://test") as client:
            return (await client.get("/jobs/api/runs", headers=sent)).status_code

    async def test_every_host_that_django_takes_is_taken(self) -> None:
        with rehearse(jobs), override_settings(ALLOWED_HOSTS=[".example.org"]):
            self.assertEqual(await self.asked("example.org"), 200)
            self.assertEqual(await self.asked("shop.example.org:8443", Origin="http://shop.example.org:8443"), 200)
            self.assertEqual(await self.asked("shop.example.net"), 421)
            # Another name of the pattern is another site.
            self.assertEqual(await self.asked("shop.example.org", Origin="http://blog.example.org"), 403)
        with rehearse(jobs), override_settings(ALLOWED_HOSTS=["*"]):
            self.assertEqual(await self.asked("anything.example"), 200)
            self.assertEqual(await self.asked("anything.example", Origin="http://evil.example"), 403)
        with rehearse(jobs), override_settings(ALLOWED_HOSTS=[], DEBUG=True):
            self.assertEqual(await self.asked("shop.localhost:8000"), 200)

    async def test_the_host_that_a_proxy_passes_on_counts_where_django_believes_it(self) -> None:
        forwarded = {"X-Forwarded-Host": "shop.example.org", "Origin": "https://shop.example.org"}
        with rehearse(jobs), override_settings(ALLOWED_HOSTS=[".example.org"]):
            self.assertEqual(await self.asked("inner:8000", **forwarded), 421)
            with override_settings(USE_X_FORWARDED_HOST=True):
                self.assertEqual(await self.asked("inner:8000", **forwarded), 200)
                self.assertEqual(await self.asked("inner:8000", **{**forwarded, "Origin": "https://inner:8000"}), 403)
