package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/metrics"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// requestOf returns a request of the user as the event that the function receives.
func (u user) requestOf(t *testing.T, path, route, key, body string) []byte {
	t.Helper()
	r := idemtest.Request{Path: path, Route: route, Key: key, Body: body, Caller: idemtest.JWT(stack.Issuer, string(u))}
	return mustJSON(t, r.APIGatewayV2())
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// written returns the metric documents that an invocation has written before its answer. Lambda
// freezes a process after the answer, so a later document might never be written.
func written(t *testing.T, function string, payload []byte) []metrics.Document {
	t.Helper()
	result, err := everything.Emulator().Invoke(t.Context(), function, payload)
	if err != nil || result.FunctionError != "" {
		t.Fatalf("%s: %v %s %s", function, err, result.FunctionError, result.Payload)
	}
	var all []metrics.Document
	for line := range bytes.Lines(result.LogTail) {
		doc, err := metrics.Parse(line)
		if err == nil {
			all = append(all, doc)
		} else if !errors.Is(err, metrics.ErrNoDocument) {
			t.Errorf("%s: CloudWatch would make no metrics of %s: %v", function, line, err)
		}
	}
	return all
}

// said returns the count, the outcome and the route in a document. It uses only data with the
// dimensions that the alarms of template.yaml have.
func said(t *testing.T, function string, doc metrics.Document) string {
	t.Helper()
	of := everything.Template().Function(function)
	var text, route string
	for _, d := range doc.Data {
		if d.Namespace != "Lambdaidem" || d.Dimensions["service"] != of.Environment["SERVICE_NAME"] || d.Dimensions["function"] != of.Name {
			t.Errorf("%s writes %+v", function, d)
		}
		if route == "" {
			route = d.Dimensions["route"]
		}
		if i := slices.IndexFunc(emf.Metrics(), func(m emf.Metric) bool { return m.Name == d.Name && m.Kind != "" }); i >= 0 && len(d.Dimensions) == 2 {
			text += fmt.Sprintf("%v %s", d.Values, d.Name)
		}
	}
	return text + " " + route
}

// Before it answers, every function writes the outcome of a call in a document that
// CloudWatch accepts, with the dimensions of the alarms.
func TestO1_FunctionsCountBeforeTheyAnswer(t *testing.T) {
	u := newUser(t)
	paid := ledger.NewPaymentID()
	image := map[string]any{"id": map[string]string{"S": paid}, "owner": map[string]string{"S": "nobody"}, "amount": map[string]string{"N": "1"}, "currency": map[string]string{"S": "EUR"}}
	record := map[string]any{"eventName": "INSERT", "dynamodb": map[string]any{"Keys": map[string]any{"id": image["id"]}, "NewImage": image}}
	message := fmt.Sprintf(`{"payment":%q,"to":"nobody","amount":1,"currency":"EUR","reference":"","paidAt":""}`, ledger.NewPaymentID())
	for function, c := range map[string]struct {
		payload     []byte
		first, then []string
	}{
		"PaymentsFunction": {u.requestOf(t, "/payments", "/payments", "order-1", dinner),
			[]string{"[1] New POST /payments"}, []string{"[1] Replayed POST /payments"}},
		"RefundsFunction": {u.requestOf(t, "/payments/"+paid+"/refunds", "/payments/{id}/refunds", "refund-1", `{"amount":1}`),
			[]string{"[1] New POST /payments/{id}/refunds"}, []string{"[1] Replayed POST /payments/{id}/refunds"}},
		"TransfersFunction": {u.requestOf(t, "/transfers", "/transfers", "transfer-1", `{"to":"nobody","amount":1,"currency":"EUR"}`),
			[]string{"[1] New reserve", "[1] New POST /transfers"}, []string{"[1] Replayed POST /transfers"}},
		"ReceiptsFunction": {mustJSON(t, map[string]any{"Records": []any{record, record}}),
			[]string{"[1] New receipt"}, []string{"[1] Replayed receipt"}},
		"NotificationsFunction": {mustJSON(t, idemtest.SQS("queue", idemtest.Message{Body: message})),
			[]string{"[1] New notification"}, []string{"[1] Replayed notification"}},
	} {
		t.Run(function, func(t *testing.T) {
			for _, want := range [][]string{c.first, c.then} {
				var got []string
				for _, doc := range written(t, function, c.payload) {
					got = append(got, said(t, function, doc))
				}
				if !slices.Equal(got, want) {
					t.Errorf("it counts %q, want %q", got, want)
				}
			}
		})
	}
}

// The metrics contain the ID of the record, so its history can be found in the log.
func TestO1_MetricsNameTheRecord(t *testing.T) {
	u := newUser(t)
	request := u.requestOf(t, "/payments", "/payments", "order-1", dinner)
	var history []string
	for range 2 {
		for _, doc := range written(t, "PaymentsFunction", request) {
			history = append(history, string(doc.Members["outcome"])+" "+string(doc.Members["record"]))
		}
	}
	records := u.records(t)
	if len(records) != 1 {
		t.Fatalf("the records are %+v", records)
	}
	want := []string{fmt.Sprintf("%q %q", lambdaidem.EventNew, records[0].ID), fmt.Sprintf("%q %q", lambdaidem.EventReplayed, records[0].ID)}
	if !slices.Equal(history, want) {
		t.Errorf("the history is %q, want %q", history, want)
	}
}
