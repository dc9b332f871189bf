"""The server: REST, the live stream and the page. `create_app` builds it; every route calls the service."""
