package lambdaidem

import "context"

// served runs the user's handler for one HTTP request.
type served interface {
	handle(context.Context) (Response, error) // calls the handler
	// answer makes the response from v, the value that the handler passed to the function Answer.
	// The result is the same as if the handler had returned v.
	answer(v any) (Response, error)
	// forget discards the handler's response, because the database has refused the writes
	// that the handler enlisted.
	forget()
}

// serve handles one guarded HTTP request. It returns the response to send, or nil if the
// handler's own response is to be sent. If the error is not nil, there is no response to send:
// a guarded Lambda handler returns the error, and Middleware sends an error response.
func (g *Guard) serve(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	identified := false
	defer recordUnidentified(ctx, &identified)
	identity, kind, refusal := g.identify(ctx, r)
	if refusal != nil {
		identified = true
		g.refused(ctx, identity, kind, refusal)
		return g.refuse(ctx, r, refusal)
	}
	c := g.requestCall(identity, r)
	c.repeated = g.opts.Repeated != nil && g.opts.Repeated(r)
	identified = true
	d := g.handleCall(ctx, c, w)
	switch {
	case d.replays && d.failure != nil: // the record has no response
		return g.refuse(ctx, r, answerUnavailable(d.failure, d.outcome))
	case d.replays:
		return w.again(ctx, r), nil
	}
	return w.handlerResponse(ctx, r, d)
}

// refuse returns the results of serve for a refused request: normally the problem document of the
// refusal and no error. If an outer guarded handler made the request, the document could mislead
// that handler's own client. refuse then changes the document, or returns the refusal as an error;
// see clientError.
func (g *Guard) refuse(ctx context.Context, r *Request, refusal *Error) (*Response, error) {
	if attemptOf(ctx) != nil {
		inner := &innerError{err: refusal, byGuard: true}
		if refusal = g.clientError(inner); refusal == nil {
			return nil, inner
		}
	}
	return g.ownAnswer(ctx, r, refusal), nil
}

// pass runs the handler for one HTTP request unguarded. Like serve, it returns a response to send
// instead of the handler's own response, or an error. If both results are nil, the handler's own
// response is sent.
func (g *Guard) pass(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	w.errorStands = true
	switch {
	case attemptOf(ctx) != nil: // inside a guarded handler, whose guard commits the enlisted writes and examines the marks of the error
		w.run(ctx)
		return nil, w.err
	case g.transact == nil: // the store has no transactions, so there is nothing to commit
		w.run(ctx)
		return w.handlerResponse(ctx, r, decision{})
	}
	return w.handlerResponse(ctx, r, g.bypass(ctx, w))
}

// httpWork implements the interface "work" for one HTTP request.
type httpWork struct {
	served
	g        *Guard
	attempt  *attempt  // the attempt that runs the handler; nil if the handler runs unguarded
	response Response  // what the handler returned, or the problem document for its error
	replayed *Response // the stored response; nil unless the request is replayed
	replaced bool      // response is a problem document to send instead of the handler's error
	refused  bool      // the database has rejected the writes that the handler enlisted
	err      error     // the error that the handler returned, or that replaces it after a rejected transaction
	// errorStands is true if the handler runs unguarded. The handler's error is then returned
	// unchanged, as without a guard, unless it contains an *Error that the client may receive.
	// httpWork.rejected sets errorStands to false, because it replaces the handler's answer.
	errorStands bool
}

func (w *httpWork) run(ctx context.Context) {
	w.attempt = attemptOf(ctx)
	w.response, w.err = w.handle(ctx)
	w.answered()
}

// answered checks whether the handler's error was made by the function Answer. If so, it
// replaces the error with a response made from the argument of Answer.
func (w *httpWork) answered() {
	if a, ok := w.err.(*answerError); ok { //nolint:errorlint // an error that wraps an Answer is an ordinary error
		w.response, w.err = w.answer(a.v)
	}
}

func (w *httpWork) rejected(err error) ending {
	w.response, w.err, w.errorStands, w.refused = Response{}, err, false, true
	w.forget()
	w.answered()
	return w.ending()
}

func (w *httpWork) ending() ending {
	w.replaced = false
	if w.err == nil {
		status, tells := w.response.Status, answerOfResponse(&w.response)
		end := ending{success: tells == success, final: tells != mayRepeat, encoded: true}
		end.outcome, end.withheld = w.attempt.decideOutcome(w.g.outcomeOf(&w.response), tells)
		if end.outcome == OutcomeReleased || end.outcome == OutcomeUncertain {
			end.err = failedStatus(status)
		}
		return end
	}
	end := w.g.endingOfError(w.attempt, w.err)
	problem := w.g.answerOf(w.attempt, w.err, end.outcome)
	if problem == nil || w.errorStands {
		return end
	}
	w.response, w.replaced, end.encoded = *problem, true, true
	return end
}

// handlerResponse returns what the method serve must return for a request that is not replayed. The
// parameter d is the decision about the request. If both results are nil, the client receives the
// handler's own response. Otherwise the returned Response or error replaces the handler's response.
func (w *httpWork) handlerResponse(ctx context.Context, r *Request, d decision) (*Response, error) {
	switch {
	case d.refusal != nil:
		return w.g.refuse(ctx, r, d.refusal)
	case w.replaced && attemptOf(ctx) != nil && w.refused && ownWritesRejected(w.err):
		return nil, &innerError{err: w.err, byGuard: true}
	case w.replaced:
		return &w.response, nil
	case w.errorStands && w.g.clientError(w.err) != nil:
		return problem(w.g.clientError(w.err)), nil //nolint:nilerr // the problem document is the answer
	case w.err != nil && runOf(ctx) != nil: // as in done.returned
		return nil, &innerError{err: w.err}
	default:
		return nil, w.err
	}
}

// ownWritesRejected reports whether a guard made err because the database rejected writes that the
// handler itself enlisted. If an outer guarded handler made the request, the client of the outer
// handler must not receive err; see Guard.refuse.
func ownWritesRejected(err error) bool {
	return isOwnRejection(withStatus(err))
}

func (w *httpWork) encode() ([]byte, error) { return encodeAnswer(w.g.toStore(&w.response)), nil }

// identify returns the Identity of a request's record. A non-nil *Error refuses the request,
// because the request can't be decoded or exceeds a limit, or its key or caller is missing or
// invalid. The Identity then has only the known parts, and the Kind is that of the event to send.
func (g *Guard) identify(ctx context.Context, r *Request) (Identity, Kind, *Error) {
	identity := Identity{Namespace: g.opts.Namespace, Tenant: tenantOf(ctx), Method: r.Method, Host: r.Host, Route: r.Route, Path: r.Path}
	identity.chooseRouteOrPath()
	if g.opts.Principal == nil {
		identity.Principal = r.Principal
	}
	refusal := g.outOfBounds(r)
	if refusal != nil && g.opts.Key != nil {
		return identity, refusal.Code.kind(), refusal
	}
	key, invalid := g.keyOf(ctx, r)
	switch identity.Key = key; {
	case refusal != nil:
		return identity, refusal.Code.kind(), refusal
	case invalid != nil:
		return identity, keyKind(invalid), invalid
	}
	identity.Principal, refusal = g.principal(ctx, r)
	return identity, EventNoPrincipal, refusal
}

func (w *httpWork) replay(d decision) (err error) {
	if d.failure == nil {
		w.replayed, err = w.g.decoded(d)
	}
	return err
}
