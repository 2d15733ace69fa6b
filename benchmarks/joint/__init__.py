"""The cost of joint scaling, compared with an HPA, a VPA, and both."""
