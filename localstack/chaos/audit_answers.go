package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// account is the part of the books that belongs to one key.
type account struct {
	key       string
	answers   []Answer
	payments  []Payment
	transfers []Transfer
	records   []Record
	robbed    int
}

func (b Books) byKey() map[string]*account {
	accounts := map[string]*account{}
	of := func(key string) *account {
		if accounts[key] == nil {
			accounts[key] = &account{key: key}
		}
		return accounts[key]
	}
	for _, a := range b.Answers {
		of(a.Key).answers = append(of(a.Key).answers, a)
	}
	for _, p := range b.Payments {
		of(p.Key).payments = append(of(p.Key).payments, p)
	}
	for _, t := range b.Transfers {
		of(t.Key).transfers = append(of(t.Key).transfers, t)
	}
	for _, r := range b.Records {
		of(r.Key).records = append(of(r.Key).records, r)
	}
	for key, n := range b.Robbed {
		of(key).robbed = n
	}
	return accounts
}

func (a *account) findings(owners map[string]string) []string {
	return slices.Concat(a.countFindings(), a.createdFindings(owners), a.otherFindings())
}

func (a *account) completed() bool {
	return slices.ContainsFunc(a.records, func(r Record) bool { return r.State == lambdaidem.Completed })
}

func (a *account) attempts() int {
	most := 0
	for _, r := range a.records {
		most = max(most, r.Attempt)
	}
	return most
}

// failed returns the number of answers other than 201 and 409. At most that many attempts of the
// key can have died; some of these requests never started an attempt.
func (a *account) failed() int {
	n := 0
	for _, answer := range a.answers {
		if answer.Status != http.StatusCreated && answer.Status != http.StatusConflict {
			n++
		}
	}
	return n
}

// countFindings compares the payments, the transfers and the number of attempts with the records.
func (a *account) countFindings() []string {
	var found []string
	made := len(a.payments) + len(a.transfers)
	switch {
	case len(a.records) > 1:
		found = append(found, fmt.Sprintf("%d records; want one (F1)", len(a.records)))
	case made > 0 && len(a.records) == 0:
		found = append(found, fmt.Sprintf("%d payments and transfers, and no record", made))
	case made > 1:
		found = append(found, fmt.Sprintf("%d payments and transfers; want one, by whatever attempt (G1)", made))
	case made == 0 && a.completed():
		found = append(found, "completed, and nothing was made (E1)")
	case len(a.payments) > 0 && !a.completed():
		found = append(found, "a payment, and its record is not completed (E1)")
	}
	for _, t := range a.transfers {
		switch {
		case !a.completed() && t.Status != reservedTransfer:
			found = append(found, fmt.Sprintf("a transfer that is %s, and its record is not completed (E1)", t.Status))
		case t.Status != doneTransfer:
			found = append(found, fmt.Sprintf("a transfer that is %s in the end; want done", t.Status))
		}
	}
	attempts := a.attempts()
	if died := a.failed() + a.robbed; attempts-1 > died {
		found = append(found, fmt.Sprintf("%d attempts, but only %d requests that failed: one was taken over while it lived (L5)", attempts, died))
	}
	return found
}

// createdFindings checks the 201 answers.
func (a *account) createdFindings(owners map[string]string) []string {
	var found []string
	bodies, fresh := map[string]int{}, 0
	for _, answer := range a.answers {
		if answer.Status == http.StatusCreated {
			bodies[answer.Body]++
			if !answer.Replayed {
				fresh++
			}
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	if !a.completed() {
		found = append(found, "answered by 201, and its record is not completed (X4)")
	}
	if len(bodies) > 1 {
		found = append(found, fmt.Sprintf("%d different 201 answers (G3): %s", len(bodies), strings.Join(slices.Sorted(maps.Keys(bodies)), " and ")))
	}
	if fresh > 1 {
		found = append(found, fmt.Sprintf("%d of its 201 answers are not replays; want one at most (G3)", fresh))
	}
	for _, body := range slices.Sorted(maps.Keys(bodies)) {
		var shown struct{ ID string }
		if err := json.Unmarshal([]byte(body), &shown); err != nil || shown.ID == "" {
			found = append(found, fmt.Sprintf("a 201 answer names nothing that was made: %q", body))
			continue
		}
		switch owner, there := owners[shown.ID]; {
		case !there:
			found = append(found, fmt.Sprintf("a 201 answer names %s, which was never made", shown.ID))
		case owner != a.key:
			found = append(found, fmt.Sprintf("a 201 answer names %s, which is key %s's (G3)", shown.ID, owner))
		}
	}
	return found
}

// otherFindings checks the answers with other statuses.
func (a *account) otherFindings() []string {
	found := map[string]bool{}
	for _, answer := range a.answers {
		if answer.Status == 0 || answer.Status == http.StatusCreated {
			continue
		}
		var doc struct{ Code string }
		_ = json.Unmarshal([]byte(answer.Body), &doc) // a gateway's own answer has no code
		switch {
		case !slices.Contains(legitimate[answer.Status], doc.Code):
			found[fmt.Sprintf("an answer that no valid request may get: %d %s", answer.Status, answer.Body)] = true
		case answer.RetryAfter == "" && strings.HasPrefix(doc.Code, "idempotency_"):
			found[fmt.Sprintf("%d %s without Retry-After", answer.Status, doc.Code)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// legitimate has the codes that a valid request may get, by status. The empty code stands for an
// answer of the gateway's own, given because the function died.
var legitimate = map[int][]string{
	http.StatusConflict:            {string(lambdaidem.ErrInProgress)},
	http.StatusInternalServerError: {"", "demo_failure"},
	http.StatusServiceUnavailable: {"", "demo_out_of_time", string(lambdaidem.ErrStoreUnavailable),
		string(lambdaidem.ErrOutOfTime), string(lambdaidem.ErrOutcomeUnknown), "clearing_unavailable"},
}
