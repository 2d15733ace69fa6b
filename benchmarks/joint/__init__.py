"""What joint scaling costs beside an HPA, a VPA, and both."""
