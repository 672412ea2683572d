package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// givenAnswer has the values of the flags of settle that describe the operator's answer.
type givenAnswer struct {
	set *pflag.FlagSet // records which flags were given

	status                int
	headers               []string
	body, bodyFile        string
	answerFile            string
	value, valueFile      string
	failCode, failMessage string
	failType              string
	failStatus            int
	none                  bool
	outcome               string
}

func (g *givenAnswer) flags(f *pflag.FlagSet) {
	g.set = f
	f.IntVar(&g.status, "status", 0, "HTTP response: the status")
	f.StringArrayVar(&g.headers, "header", nil, `HTTP response: a header, "Name: value"; may be repeated`)
	f.StringVar(&g.body, "body", "", "HTTP response: the body")
	f.StringVar(&g.bodyFile, "body-file", "", "HTTP response: a file with the body; - is standard input")
	f.StringVar(&g.answerFile, "answer-file", "", "HTTP response: a file with the whole response, in the form of API Gateway's proxy response; - is standard input")
	f.StringVar(&g.value, "value", "", "result of Do or Handler: its JSON")
	f.StringVar(&g.valueFile, "value-file", "", "result of Do or Handler: a file with its JSON; - is standard input")
	f.StringVar(&g.failCode, "fail-code", "", "permanent failure: its code")
	f.StringVar(&g.failMessage, "fail-message", "", "permanent failure: its text")
	f.StringVar(&g.failType, "fail-type", "", "permanent failure: the errorType that Lambda reports; default: the code")
	f.IntVar(&g.failStatus, "fail-status", 0, "permanent failure: its HTTP status, if it has one")
	f.BoolVar(&g.none, "no-answer", false, "complete the record without an answer: retries get the error \"answer unavailable\"; with --outcome succeeded, they are told that the operation was carried out")
	f.StringVar(&g.outcome, "outcome", "", "succeeded or failed; default: what the guard would decide from the status, and failed with --no-answer")
}

// The forms of answer that an operator can give. The flags select one; see forms.
const (
	anAnswer      = "an answer of HTTP"
	aStoredAnswer = "a stored answer"
	aResult       = "a result"
	aFailure      = "a permanent failure"
	noAnswer      = "no answer"
	aMessage      = "a message's"
)

// forms has, for each form of answer, the flags that select it, and the kinds of record
// that the answer fits.
var forms = map[string]struct {
	flags []string
	kinds []lambdaidem.RecordKind
}{
	anAnswer:      {[]string{"status", "header", "body", "body-file"}, []lambdaidem.RecordKind{lambdaidem.RecordHTTP}},
	aStoredAnswer: {[]string{"answer-file"}, []lambdaidem.RecordKind{lambdaidem.RecordHTTP}},
	aResult:       {[]string{"value", "value-file"}, []lambdaidem.RecordKind{lambdaidem.RecordValue}},
	aFailure:      {[]string{"fail-code", "fail-message", "fail-type", "fail-status"}, []lambdaidem.RecordKind{lambdaidem.RecordValue}},
	noAnswer:      {[]string{"no-answer"}, []lambdaidem.RecordKind{lambdaidem.RecordHTTP, lambdaidem.RecordValue, lambdaidem.RecordMessage}},
	aMessage:      {nil, []lambdaidem.RecordKind{lambdaidem.RecordMessage}},
}

// form returns the form of answer that the flags select, or "" if they select none. It
// returns an error if they select more than one.
func (g *givenAnswer) form() (string, error) {
	used := ""
	for form, of := range forms {
		for _, name := range of.flags {
			if !g.set.Changed(name) || used == form {
				continue
			}
			if used != "" {
				return "", errors.New("give one answer: --status and what goes with it, --answer-file, --value, --fail-code, or --no-answer")
			}
			used = form
		}
	}
	return used, nil
}

// result returns the result to store in a record of the given kind. It does not validate
// the result; [lambdaidem.CheckResult] does.
func (g *givenAnswer) result(ctx context.Context, a *app, kind lambdaidem.RecordKind) (lambdaidem.Result, error) {
	none := lambdaidem.Result{}
	form, err := g.form()
	if err != nil {
		return none, err
	}
	if form == "" && kind == lambdaidem.RecordMessage {
		form = aMessage
	}
	if !slices.Contains(forms[form].kinds, kind) {
		return none, fmt.Errorf("it is a record of kind %s, and needs an answer of that form; see idem settle --help", kind)
	}
	r := lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded}
	switch form {
	case aMessage:
		r.Value = []byte("{}")
	case noAnswer:
		r.Outcome = lambdaidem.OutcomeFailed
		why := "an operator ended it without an answer, and nobody knows whether the operation was carried out"
		if lambdaidem.Outcome(g.outcome) == lambdaidem.OutcomeSucceeded {
			why = "the operation was carried out, and an operator settled it without an answer"
		}
		r.Failure = lambdaidem.NoAnswer(why)
	case aFailure:
		r.Outcome = lambdaidem.OutcomeFailed
		r.Failure = &lambdaidem.Failure{Code: lambdaidem.Code(g.failCode), Type: cmp.Or(g.failType, g.failCode), Message: g.failMessage, Status: g.failStatus}
	case aResult:
		if r.Value, err = g.json(ctx, a, g.value, g.valueFile); err != nil {
			return none, err
		}
	case aStoredAnswer:
		if r, err = g.stored(ctx, a); err != nil {
			return none, err
		}
	default:
		if r, err = g.http(ctx, a); err != nil {
			return none, err
		}
	}
	switch o := lambdaidem.Outcome(g.outcome); o {
	case "":
	case lambdaidem.OutcomeSucceeded, lambdaidem.OutcomeFailed:
		r.Outcome = o
	default:
		return none, fmt.Errorf("--outcome is %q; it must be succeeded or failed", o)
	}
	if r.Outcome == lambdaidem.OutcomeReleased {
		return none, errors.New("the guard would not store an answer of that status: it tells the client to try again, and every retry would get it; use --outcome failed if that is meant")
	}
	return r, nil
}

// json returns the JSON in text or in the file, without white space between its tokens.
func (g *givenAnswer) json(ctx context.Context, a *app, text, file string) ([]byte, error) {
	raw, err := read(ctx, a, text, file)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("the value is no JSON: %w", err)
	}
	return compact.Bytes(), nil
}

// stored returns the result for the response in --answer-file. The file has the JSON form
// in which records store responses; white space and the order of members may differ.
func (g *givenAnswer) stored(ctx context.Context, a *app) (lambdaidem.Result, error) {
	raw, err := read(ctx, a, "", g.answerFile)
	if err != nil {
		return lambdaidem.Result{}, err
	}
	resp, err := lambdaidem.DecodeAnswer(raw)
	if err != nil {
		return lambdaidem.Result{}, err
	}
	return lambdaidem.Result{Outcome: lambdaidem.DefaultOutcome(resp), Value: lambdaidem.EncodeAnswer(resp)}, nil
}

// http returns the result for the HTTP response of --status, --header and --body.
func (g *givenAnswer) http(ctx context.Context, a *app) (lambdaidem.Result, error) {
	if g.status == 0 {
		return lambdaidem.Result{}, errors.New("an answer of HTTP needs --status")
	}
	body, err := read(ctx, a, g.body, g.bodyFile)
	if err != nil {
		return lambdaidem.Result{}, err
	}
	resp := &lambdaidem.Response{Status: g.status, Body: string(body)}
	if !utf8.Valid(body) { // a Lambda function returns a binary body in base64
		resp.Body, resp.Base64 = base64.StdEncoding.EncodeToString(body), true
	}
	for _, h := range g.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return lambdaidem.Result{}, fmt.Errorf("--header is %q; it must be \"Name: value\"", h)
		}
		if resp.Header == nil {
			resp.Header = map[string][]string{}
		}
		resp.Header[name] = append(resp.Header[name], strings.TrimSpace(value))
	}
	return lambdaidem.Result{Outcome: lambdaidem.DefaultOutcome(resp), Value: lambdaidem.EncodeAnswer(resp)}, nil
}

// maxAnswer is the maximum size in bytes of a file that read accepts. It equals the maximum
// answer that a store can be set to keep.
const maxAnswer = 64 << 20

// read returns text, or the contents of file if that is not empty. The file "-" is standard
// input.
func read(ctx context.Context, a *app, text, file string) ([]byte, error) {
	var from io.Reader
	switch {
	case text != "" && file != "":
		return nil, errors.New("give a text or a file, not both")
	case file == "":
		return []byte(text), nil
	case file == "-":
		from = a.In
	default:
		f, err := os.Open(file) //nolint:gosec // a file that the operator has chosen
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	all, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(from, maxAnswer+1)) })
	if err == nil && len(all) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return all, nil
}
