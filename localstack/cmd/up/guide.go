package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// guide says where things are in the stack of a template that is not known here.
func guide(w io.Writer, s *stack.Stack) {
	_, _ = fmt.Fprintf(w, "\nDynamoDB Local is at %s", s.Database().Endpoint())
	for i, table := range s.Template().Tables {
		_, _ = fmt.Fprintf(w, "%s%s is %s", []string{", with the tables: ", ", "}[min(i, 1)], table.LogicalID, table.Name)
	}
	_, _ = fmt.Fprintln(w, ".")
	urls := s.Emulator().URLs()
	for _, api := range slices.Sorted(maps.Keys(urls)) {
		_, _ = fmt.Fprintf(w, "\n%s answers on %s. Tokens are not verified: keep it to yourself.\n\n", api, urls[api])
		for _, f := range s.Template().Functions {
			for _, route := range f.Routes {
				if route.API == api {
					_, _ = fmt.Fprintf(w, "  %-6s %s%s  (%s)\n", route.Method, urls[api], route.Path, f.LogicalID)
				}
			}
		}
	}
	_, _ = fmt.Fprintf(w, `
Call a function past any API, with an event of your own. Its answer is in out.json.

  AWS_DEFAULT_REGION=%[1]s AWS_ACCESS_KEY_ID=%[2]s AWS_SECRET_ACCESS_KEY=%[2]s \
    aws lambda invoke --endpoint-url %[3]s --function-name NAME --payload fileb://event.json out.json
`, s.Database().Config().Region, ddblocal.DummyCredential, s.Emulator().InvokeURL())
	tokenGuide(w, s.Template())
	operatorGuide(w, s)
}

// tokenGuide says how to make a token, if a route asks for one.
func tokenGuide(w io.Writer, t *template.Template) {
	for _, f := range t.Functions {
		for _, route := range f.Routes {
			if route.Authorizer != nil {
				_, _ = fmt.Fprintf(w, `
Make a token of any claims, for the header %s: Bearer $TOKEN. Nothing of it is verified but the scopes of a route ("scope":"a b").

  jwt() { printf 'e30.%%s.' "$(printf '%%s' "$1" | base64 | tr -d '=\n' | tr '/+' '_-')"; }
  TOKEN=$(jwt '{"iss":"%s","sub":"alice"}')
`, route.Authorizer.Header, stack.Issuer)
				return
			}
		}
	}
}

// operatorGuide says how the operator's command looks into the table of records.
func operatorGuide(w io.Writer, s *stack.Stack) {
	records, index := recordTable(s.Template())
	if records == "" {
		return
	}
	how := "--scan"
	if index != "" {
		how = "--lease-index " + index
	}
	_, _ = fmt.Fprintf(w, `
Find the leases of attempts that died, and look into records, with the operator's command (docs/idem.md). The first line
installs it into Go's bin folder, in the version of the module that runs up.

  go install -mod=mod github.com/lambdaidem/toolkit/cmd/idem
  export AWS_ENDPOINT_URL_DYNAMODB=%[1]s AWS_DEFAULT_REGION=%[2]s AWS_ACCESS_KEY_ID=%[3]s AWS_SECRET_ACCESS_KEY=%[3]s
  export IDEM_TABLE=%[4]s
  idem leases %[5]s
`, s.Database().Endpoint(), s.Database().Config().Region, ddblocal.DummyCredential, records, how)
}

// recordTable returns the table that records can be in, and its first index: the
// first table whose whole key is the attribute id and that has a TTL.
func recordTable(t *template.Template) (name, index string) {
	for _, table := range t.Tables {
		if len(table.Key) == 1 && table.Key[0].Name == "id" && table.TTLAttribute != "" {
			if len(table.Indexes) > 0 {
				index = table.Indexes[0].Name
			}
			return table.Name, index
		}
	}
	return "", ""
}

// aNotification is a message that the notifications function of this project's own
// template takes, of a payment that need not be there.
const aNotification = `{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","to":"alice","amount":1250,"currency":"EUR","reference":"","paidAt":"2026-01-02T03:04:05Z"}`

// opening is what the accounts of alice and bob have at first, in cents.
const opening = 100_000

// projectGuide says what can be done with this project's own stack.
func projectGuide(w io.Writer, s *stack.Stack) {
	_, _ = fmt.Fprintf(w, `
The functions answer on %[1]s. Tokens are not verified: keep it to yourself.
DynamoDB Local is at %[2]s, with the tables %[3]s and %[4]s.

  TOKEN=%[5]s

Pay out of the account of alice, which has 1000.00 EUR. Send it twice: the second answer has X-Idempotency-Replayed: true, and there is one payment.

  curl -i %[1]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: order-1' \
    -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'

See it, and refund a part of it (put the id of the answer in place of ID).

  curl -i %[1]s/payments/ID -H "Authorization: Bearer $TOKEN"
  curl -i %[1]s/payments/ID/refunds -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: refund-1' \
    -H 'Content-Type: application/json' -d '{"amount":400}'

Move money to bob's account. The clearing house that is told is a stub; the reference says how it behaves:
delay=5000, fail=2, lose=1, refuse. X-Demo-Crash: cleared kills the first attempt when it was told; repeat the request
until 12 seconds are over. With X-Demo-Policy: hold beside it the key waits for an operator (docs/operate.md).

  curl -i %[1]s/transfers -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: transfer-1' \
    -H 'Content-Type: application/json' -d '{"to":"bob","amount":500,"currency":"EUR","reference":"fail=1"}'

Ask for a slow handler, and repeat the request meanwhile: 409 with Retry-After.

  curl -i %[1]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: order-2' \
    -H 'X-Demo-Delay-Ms: 5000' -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'

Ask for a failure of the first attempt: 500, and the same request again is attempt 2.

  curl -i %[1]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: order-3' \
    -H 'X-Demo-Fail-Attempts: 1' -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'

Look into the tables by the AWS CLI. It wants a Region and credentials; these are made up.

  AWS_DEFAULT_REGION=%[6]s AWS_ACCESS_KEY_ID=%[7]s AWS_SECRET_ACCESS_KEY=%[7]s \
    aws dynamodb scan --endpoint-url %[2]s --table-name %[3]s

Find the leases of attempts that died, and look into records, with the operator's command (docs/idem.md). The first line
installs it into Go's bin folder.

  go install ./cmd/idem
  export AWS_ENDPOINT_URL_DYNAMODB=%[2]s AWS_DEFAULT_REGION=%[6]s AWS_ACCESS_KEY_ID=%[7]s AWS_SECRET_ACCESS_KEY=%[7]s
  export IDEM_TABLE=%[3]s IDEM_LEASE_INDEX=%[9]s
  idem leases

Call a function past the API, with an event of your own. Its answer is in out.json.

  echo '{"version":"2.0","rawPath":"/payments/ID","requestContext":{"http":{"method":"GET","path":"/payments/ID"},
    "authorizer":{"jwt":{"claims":{"iss":"%[8]s","sub":"alice"}}}}}' |
    AWS_DEFAULT_REGION=%[6]s AWS_ACCESS_KEY_ID=%[7]s AWS_SECRET_ACCESS_KEY=%[7]s \
    aws lambda invoke --endpoint-url %[1]s --function-name PaymentsFunction --payload fileb:///dev/stdin out.json
`, s.URL(), s.Database().Endpoint(), s.Table("IdempotencyTable"), s.Table("PaymentsTable"), stack.Token("alice"),
		s.Database().Config().Region, ddblocal.DummyCredential, stack.Issuer, leaseIndex(s.Template()))
}

// leaseIndex returns the index of leases of this project's own table.
func leaseIndex(t *template.Template) string {
	for _, table := range t.Tables {
		if table.LogicalID == "IdempotencyTable" && len(table.Indexes) > 0 {
			return table.Indexes[0].Name
		}
	}
	return "" // as without one
}
