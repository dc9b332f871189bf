# shop/tests.py
from django.test import TestCase, TransactionTestCase

from ostinato.integrations.django import jobs
from ostinato.testing import drain, rehearse
from shop.models import Order
from shop.tasks import confirm, count_orders


class OrderTest(TestCase):
    def test_a_task_that_is_called_is_a_function(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        self.assertEqual(confirm(order.pk), "sent to ada@example.org")

    def test_eager_runs_it_in_the_transaction_of_the_test(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        with rehearse(jobs, eager=True):
            self.assertEqual(confirm.enqueue(order.pk).result(), "sent to ada@example.org")
            self.assertEqual(count_orders.enqueue().result(), 1)  # a coroutine, too


class DrainTest(TransactionTestCase):
    def test_an_engine_does_what_is_due(self) -> None:  # in threads, which see only what is committed
        order = Order.objects.create(mail="ada@example.org")
        with rehearse(jobs):
            run = confirm.enqueue(order.pk)
            drain(jobs)
            self.assertEqual(run.result(), "sent to ada@example.org")
