"""The server: REST, the live stream and the page. `create_app` puts them on a house; every route calls the service."""
