package eventsource

import (
	"encoding/json"
	"slices"
	"testing"
)

// The IDs of a real batch are unique, but reported accepts duplicates too.
func TestV2_AReportedIdMeansAllRecordsOfThatId(t *testing.T) {
	got, err := reported([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`), []string{"a", "b", "a"})
	if err != nil || !slices.Equal(got, []int{0, 2}) {
		t.Errorf("got %v, %v; want [0 2]", got, err)
	}
}

// An empty itemIdentifier is invalid, even if a record's ID is empty.
func TestV2_AnEmptyIdIsNobodys(t *testing.T) {
	if got, err := reported([]byte(`{"batchItemFailures":[{"itemIdentifier":""}]}`), []string{""}); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}

// FuzzReported checks that, for any response, the indexes are in ascending order and each is that
// of a record whose ID the response reports, and that an error or an invalid response comes with
// no indexes.
func FuzzReported(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`, `{"batchItemFailures":[{"itemIdentifier":"c"}]}`,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`, `{"batchItemFailures":null}`, `{"BATCHITEMFAILURES":[{"itemIdentifier":"a"}]}`, `[]`, `"a"`, `{"batchItemFailures":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		ids := []string{"a", "b", "a"}
		places, err := reported(answer, ids)
		if err != nil {
			if places != nil {
				t.Errorf("%q: places %v and %v", answer, places, err)
			}
			return
		}
		var response struct {
			BatchItemFailures []struct{ ItemIdentifier string }
		}
		if !json.Valid(answer) && len(places) > 0 || json.Unmarshal(answer, &map[string]any{}) == nil && json.Unmarshal(answer, &response) != nil && places != nil {
			t.Errorf("%q: places %v of what is no answer", answer, places)
		}
		if !slices.IsSorted(places) || len(places) > len(ids) {
			t.Errorf("%q: places %v", answer, places)
		}
		for _, i := range places {
			if !slices.ContainsFunc(response.BatchItemFailures, func(item struct{ ItemIdentifier string }) bool { return item.ItemIdentifier == ids[i] }) {
				t.Errorf("%q: nobody reported %s", answer, ids[i])
			}
		}
	})
}
