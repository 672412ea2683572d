package simulator

import (
	"errors"
	"net/http"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Ending is how a run of the handler ended.
type Ending string

// The endings.
const (
	Created     Ending = "201"
	Declined    Ending = "402"
	TooMany     Ending = "429"
	ServerError Ending = "500"
	Failed      Ending = "error"     // an error that is not marked by lambdaidem.Retryable or the like
	Retryable   Ending = "retryable" // an error which says that nothing happened
	Permanent   Ending = "permanent"
	Uncertain   Ending = "uncertain"
	Rejected    Ending = "reject"
	Panicked    Ending = "panic"
	Deadline    Ending = "deadline" // its context ended before the handler did
	Killed      Ending = "killed"   // its process was killed before the handler ended
	Running     Ending = ""         // not ended yet
)

// The endings by a step's error.
const (
	StepUnknown Ending = "step: unknown"     // the step ran, and its result may not be stored
	StepLost    Ending = "step: lost"        // another attempt has taken over
	StepRefused Ending = "step: did not run" // the step's context had ended
)

// The endings of a run whose handler returned, and whose condition then failed. They differ in what
// the handler's ElseFunc returns.
const (
	RefusedReject    Ending = "condition: reject"
	RefusedAnswer    Ending = "condition: answer"
	RefusedRetryable Ending = "condition: retryable"
	RefusedUncertain Ending = "condition: uncertain"
	RefusedSilent    Ending = "condition: nothing said"
	RefusedPanicked  Ending = "condition: panic"
)

// traits has what the handler does in an ending, and what the rules require of the record.
type traits struct {
	ending Ending
	bad    bool  // a plan chooses this ending at random
	effect bool  // the handler has its effect before it ends
	leaves state // the record's state afterwards, under policy Rerun; in progress: the lease runs out
	unsure bool  // under policy Hold, nobody knows whether the handler had an effect
	answer func(*run) (events.APIGatewayV2HTTPResponse, error)
	// verdict returns what the handler's ElseFunc returns for a failed condition.
	verdict func(*run) error
}

// endings are all endings. The order of the bad ones must stay as it is, because a seed selects
// them by index.
var endings = []traits{
	{ending: Created, effect: true, leaves: completed, answer: status(http.StatusCreated, (*run).answer)},
	{ending: ServerError, bad: true, leaves: released, unsure: true, answer: status(http.StatusInternalServerError, text("internal"))},
	{ending: Failed, bad: true, leaves: released, unsure: true, answer: failure(func(*run) error { return errCard })},
	{ending: Retryable, bad: true, leaves: released, answer: failure(func(*run) error { return lambdaidem.Retryable(errCard) })},
	{ending: Panicked, bad: true, leaves: released, unsure: true, answer: failure(func(r *run) error { panic(scripted{r.attempt}) })},
	{ending: TooMany, bad: true, leaves: released, answer: status(http.StatusTooManyRequests, text("slow down"))},
	{ending: Declined, bad: true, effect: true, leaves: completed, answer: status(http.StatusPaymentRequired, (*run).answer)},
	{ending: Permanent, bad: true, effect: true, leaves: completed, answer: failure(func(*run) error { return lambdaidem.Permanent(errCard) })},
	{ending: Uncertain, bad: true, effect: true, leaves: inProgress, unsure: true, answer: failure(func(*run) error { return lambdaidem.Uncertain(errCard) })},
	{ending: Rejected, bad: true, effect: true, leaves: completed, answer: failure(func(r *run) error {
		return lambdaidem.Reject(http.StatusConflict, insufficient, r.answer())
	})},
	{ending: Deadline, leaves: released, unsure: true},
	{ending: Killed, leaves: inProgress, unsure: true},
	{ending: Running, leaves: inProgress, unsure: true},
	{ending: StepUnknown, leaves: inProgress, unsure: true},
	{ending: StepLost, leaves: inProgress, unsure: true},
	{ending: StepRefused, leaves: released, unsure: true},
	{ending: RefusedReject, leaves: completed, verdict: func(r *run) error {
		return lambdaidem.Reject(http.StatusPaymentRequired, insufficient, r.answer())
	}},
	{ending: RefusedAnswer, leaves: completed, verdict: func(r *run) error {
		return lambdaidem.Answer(events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Body: r.answer()})
	}},
	{ending: RefusedRetryable, leaves: released, verdict: func(*run) error { return lambdaidem.Retryable(errCard) }},
	{ending: RefusedUncertain, leaves: inProgress, unsure: true, verdict: func(*run) error { return lambdaidem.Uncertain(errCard) }},
	{ending: RefusedSilent, leaves: released, unsure: true, verdict: func(*run) error { return nil }},
	{ending: RefusedPanicked, leaves: released, unsure: true, verdict: func(r *run) error { panic(scripted{r.attempt}) }},
}

// badEndings are the endings from which a plan draws at random.
var badEndings = slices.DeleteFunc(slices.Clone(endings), func(t traits) bool { return !t.bad })

// conditionEndings are the endings of a run whose condition fails. RefusedReject is in the list
// three times, because it is the most usual.
var conditionEndings = append(slices.DeleteFunc(slices.Clone(endings), func(t traits) bool { return t.verdict == nil }), RefusedReject.traits(), RefusedReject.traits())

// traits returns the traits of an ending. It panics if endings lacks it.
func (e Ending) traits() traits {
	i := slices.IndexFunc(endings, func(t traits) bool { return t.ending == e })
	if i < 0 {
		panic("simulator: no such ending: " + string(e))
	}
	return endings[i]
}

// under returns the record's state after the ending, under a policy. After an unsure ending nothing
// is written under policy Hold, and the lease runs out.
func (t traits) under(p lambdaidem.Policy) state {
	if p == lambdaidem.Hold && t.unsure {
		return inProgress
	}
	return t.leaves
}

// insufficient is the problem code with which the handler refuses a payment.
const insufficient = "insufficient_funds"

// errCard is the error of the simulated handler.
var errCard = errors.New("card network")

// scripted is the value with which the simulated handler panics.
type scripted struct{ attempt int }

func text(s string) func(*run) string { return func(*run) string { return s } }

// status returns a function that answers with a status and a body.
func status(code int, body func(*run) string) func(*run) (events.APIGatewayV2HTTPResponse, error) {
	return func(r *run) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: code, Body: body(r)}, nil
	}
}

// failure returns a function that answers with an error.
func failure(err func(*run) error) func(*run) (events.APIGatewayV2HTTPResponse, error) {
	return func(r *run) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, err(r)
	}
}
