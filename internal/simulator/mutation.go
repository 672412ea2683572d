package simulator

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Mutation is a deliberate mistake in the protocol, made from outside: on the
// wire, around the store, around the handler or in the options. The simulator
// proves itself by finding each.
type Mutation struct {
	Name    string
	Request func(op string, body []byte) []byte                             // changes what the database is asked
	Reply   func(op string, request []byte, status int, body []byte) []byte // changes what it answers
	Store   func(lambdaidem.Store, *actor) lambdaidem.Store                 // wraps the store
	Options func(*lambdaidem.Options)                                       // changes the guard's options
	Handler func(handler) handler                                           // wraps the handler
	Context func(context.Context) context.Context                           // changes the invocation's context
}

type handler = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
