package eventsource_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestV2_AMappingThatDoesNotReportFailuresIsNamedAtTheStart(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("orders", nil)
		w.create("refunds", nil)
		orders, refunds, stream := fromQueue("orders"), fromQueue("refunds"), fromStream()
		orders.Name, refunds.Name, stream.Name = "Orders", "Refunds", "Ledger"
		orders.ReportsFailures, stream.ReportsFailures = false, false
		w.start(succeeds, orders, refunds, stream)
		synctest.Wait()
		const warning = ": WARNING: the mapping has no FunctionResponseTypes: [ReportBatchItemFailures]"
		w.logs("eventsource: Consumer/Orders" + warning)
		w.logs("eventsource: Consumer/Ledger" + warning)
		expect(t, "warnings", strings.Count(w.log.String(), warning), 2)
	})
}

// Without ReportBatchItemFailures, Lambda ignores the response: it deletes the messages, or moves
// on in the stream.
func TestV2_AnAnswerThatListsFailuresOverAMappingThatDoesNotReportThemIsLoggedAsALoss(t *testing.T) {
	for name, source := range map[string]template.Source{"queue": fromQueue("orders"), "stream": fromStream()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				q := w.create("orders", nil)
				w.send(q, "", "a", "b")
				w.stream.write("one", "a", "b")
				source.ReportsFailures = false
				w.start(reports("b"), source)
				time.Sleep(time.Minute)
				expect(t, "batches", w.batches(), []string{"a b"})
				w.logs("eventsource: Consumer/Source: the function answered with batchItemFailures, but the mapping has no " +
					"FunctionResponseTypes: [ReportBatchItemFailures]: a batch of 2 counts as a success, and the records that failed are LOST")
			})
		})
	}
}
