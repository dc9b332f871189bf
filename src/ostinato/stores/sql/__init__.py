"""What every database does alike, written once over connection.py; sqlite/ and postgres/ have what differs."""
