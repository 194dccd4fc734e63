"""What clients that are programs have in common.

`options` reads what they are set to, `folder` is where one attempt's program lives, `servers` how
it reaches the servers, `model_api` how it reaches its model, `run` runs it to a certain end, and
`decide` says how the attempt ended. What a client's own output means is the client's.
"""
