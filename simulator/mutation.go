package simulator

import (
	"context"
	"io"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Mutation is a deliberate mistake in the protocol, made from outside: on the wire, around the
// store, around the handler or in the options. The checks are tested by finding each mutation.
type Mutation struct {
	Name     string
	Request  func(op string, body []byte) []byte                             // changes requests to the database
	Reply    func(op string, request []byte, status int, body []byte) []byte // changes the database's replies
	Store    func(lambdaidem.Store, *actor) lambdaidem.Store                 // wraps the store
	Tx       func(lambdaidem.Tx, lambdaidem.Store, *actor) lambdaidem.Tx     // wraps each transaction
	Key      func(key string, r *run) string                                 // changes a step's downstream key
	Options  func(*lambdaidem.Options)                                       // changes the guard's options
	Handler  func(handler) handler                                           // wraps the handler
	Operator func(*dynamostore.OperatorOptions)                              // changes an operator's options
	Context  func(context.Context) context.Context                           // changes the invocation's context
	Inner    func(context.Context, *lambdaidem.Call, *run) context.Context   // changes an inner call and its context
	Regions  func(*regions)                                                  // changes the global table
	Plan     func(*plan)                                                     // changes the plan, for a mistake that shows only in few plans
}

type handler = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// mutatedTransactions is a store whose transactions are changed.
type mutatedTransactions struct {
	*dynamostore.Store
	change func(lambdaidem.Tx, lambdaidem.Store, *actor) lambdaidem.Tx
	actor  *actor
}

// Begin returns a changed transaction.
func (s mutatedTransactions) Begin(random io.Reader) lambdaidem.Tx {
	return s.change(s.Store.Begin(random), s.Store, s.actor)
}
