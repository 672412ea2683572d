package idemclient_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// decided has the expected decision of the client for every code of the guard: whether the client
// retries a response with this code and status.
var decided = map[lambdaidem.Code]struct {
	status int
	retry  bool
}{
	lambdaidem.ErrInProgress:        {409, true},
	lambdaidem.ErrStoreUnavailable:  {503, true},
	lambdaidem.ErrOutOfTime:         {503, true},
	lambdaidem.ErrOutcomeUnknown:    {503, true},
	lambdaidem.ErrRetryable:         {503, true},
	lambdaidem.ErrConditionFailed:   {500, true}, // the record was released, or held under policy Hold; a retry of a held record gets a 409, which is final
	lambdaidem.ErrAttemptAbandoned:  {409, false},
	lambdaidem.ErrPayloadMismatch:   {409, false},
	lambdaidem.ErrAnswerUnavailable: {500, false},
	lambdaidem.ErrAnswerUnreadable:  {500, false},
	lambdaidem.ErrRecordForeign:     {500, false},
	lambdaidem.ErrStreaming:         {500, false},
	lambdaidem.ErrPermanent:         {500, false},
	lambdaidem.ErrWriteInvalid:      {500, false},
	lambdaidem.ErrBodyUnknown:       {500, false},
	lambdaidem.ErrRequestInvalid:    {500, false},
	// The statuses of these codes are never retried, whatever the code.
	lambdaidem.ErrKeyMissing:       {400, false},
	lambdaidem.ErrKeyInvalid:       {400, false},
	lambdaidem.ErrBodyTooLarge:     {413, false},
	lambdaidem.ErrURITooLong:       {414, false},
	lambdaidem.ErrHeadersTooMany:   {431, false},
	lambdaidem.ErrPrincipalUnknown: {403, false},
	// The error of a message in a batch, never sent over HTTP. If it were, its status would be
	// retried.
	lambdaidem.ErrNotBegun: {503, true},
	// A Store returns this error; it is never sent over HTTP. If it were, it would be a 409 with an
	// unknown code, which is final.
	lambdaidem.ErrLeaseLost: {409, false},
}

// Decided has a decision for every code of the guard, and the client acts as decided.
func TestC1_EveryCodeIsDecided(t *testing.T) {
	for _, code := range codesOf(t) {
		want, ok := decided[code]
		if !ok {
			t.Errorf("nobody decided whether %s is retried", code)
			continue
		}
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{problem(want.status, string(code)), answer(201, "paid")}}
				resp, err := client(base).Do(post(t.Context(), t, "x"))
				if err != nil {
					t.Fatal(err)
				}
				status, body := read(t, resp)
				if retried := len(base.sent) == 2; retried != want.retry {
					t.Errorf("retried: %v", retried)
				}
				if !want.retry && (status != want.status || !strings.Contains(body, string(code))) {
					t.Errorf("the caller got %d %q", status, body)
				}
				base.closed(t)
			})
		})
	}
}

// A replay is final whatever its status. The client recognizes it by the header that the
// guard adds; the guard's own tests check that header.
func TestC1_AReplayIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{answer(503, "", "X-Idempotency-Replayed", "true"), answer(201, "")}}
		resp, err := client(base).Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := read(t, resp); status != http.StatusServiceUnavailable || len(base.sent) != 1 {
			t.Errorf("after %d attempts the caller got %d", len(base.sent), status)
		}
	})
}

// codesOf returns the guard's codes. It reads them from the source, so that no new code can be
// forgotten here.
func codesOf(t *testing.T) []lambdaidem.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []lambdaidem.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
			for _, v := range spec.Values {
				text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, lambdaidem.Code(text))
			}
		}
		return true
	})
	if len(codes) != len(decided) {
		t.Errorf("the guard has %d codes, %d are decided", len(codes), len(decided))
	}
	return codes
}
