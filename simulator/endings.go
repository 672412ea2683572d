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
	Failed      Ending = "error"     // an error that nothing marks
	Retryable   Ending = "retryable" // an error that says that surely nothing happened
	Permanent   Ending = "permanent"
	Uncertain   Ending = "uncertain"
	Rejected    Ending = "reject"
	Panicked    Ending = "panic"
	Deadline    Ending = "deadline" // its context ended first
	Killed      Ending = "killed"   // its process did
	Running     Ending = ""         // not ended yet
)

// The endings by a step's error (E5).
const (
	StepUnknown Ending = "step: unknown"     // it ran, and may not be stored
	StepLost    Ending = "step: lost"        // another attempt has taken over
	StepRefused Ending = "step: did not run" // its context had ended
)

// The endings of a run that ended well, and whose condition then failed: by what
// the handler's author says of that (E2).
const (
	RefusedReject    Ending = "condition: reject"
	RefusedAnswer    Ending = "condition: answer"
	RefusedRetryable Ending = "condition: retryable"
	RefusedUncertain Ending = "condition: uncertain"
	RefusedSilent    Ending = "condition: nothing said"
	RefusedPanicked  Ending = "condition: panic"
)

// traits are what the rules say of an ending, and what the handler does.
type traits struct {
	ending Ending
	bad    bool  // the script lets attempts end so now and then
	effect bool  // it comes after the effect
	leaves state // of its record, under policy rerun (X1, X2); in progress: its lease runs out
	unsure bool  // under policy hold nobody knows whether it had an effect (X2)
	answer func(*run) (events.APIGatewayV2HTTPResponse, error)
	// verdict is what the handler's author says of a failed condition.
	verdict func(*run) error
}

// endings is the one table of them. Chance picks among the bad ones by their
// place here.
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

// badEndings are those that a plan deals out at random.
var badEndings = slices.DeleteFunc(slices.Clone(endings), func(t traits) bool { return !t.bad })

// conditionEndings are those of a failed condition. That of a rejection is the
// most usual.
var conditionEndings = append(slices.DeleteFunc(slices.Clone(endings), func(t traits) bool { return t.verdict == nil }), RefusedReject.traits(), RefusedReject.traits())

// traits looks an ending up. One that the table lacks is a mistake of ours.
func (e Ending) traits() traits {
	i := slices.IndexFunc(endings, func(t traits) bool { return t.ending == e })
	if i < 0 {
		panic("simulator: no such ending: " + string(e))
	}
	return endings[i]
}

// under returns the state of its record that an ending leaves under a policy: under
// hold nothing is written after what is unsure, and the lease runs out.
func (t traits) under(p lambdaidem.Policy) state {
	if p == lambdaidem.Hold && t.unsure {
		return inProgress
	}
	return t.leaves
}

// insufficient is the code of the application's own refusal.
const insufficient = "insufficient_funds"

// errCard is what the script's handlers fail with.
var errCard = errors.New("card network")

// scripted is the value that the script's handlers panic with.
type scripted struct{ attempt int }

func text(s string) func(*run) string { return func(*run) string { return s } }

// status answers with a status and a body.
func status(code int, body func(*run) string) func(*run) (events.APIGatewayV2HTTPResponse, error) {
	return func(r *run) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: code, Body: body(r)}, nil
	}
}

// failure answers with an error.
func failure(err func(*run) error) func(*run) (events.APIGatewayV2HTTPResponse, error) {
	return func(r *run) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, err(r)
	}
}
