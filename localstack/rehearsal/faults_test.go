package rehearsal_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

var (
	lock       = &proxy.Request{Operation: "PutItem", Body: []byte(`{"Item":{"id":{"S":"lambdaidem#a"},"status":{"S":"INPROGRESS"}},"ExpressionAttributeNames":{"#status":"status"}}`)}
	takeover   = &proxy.Request{Operation: "UpdateItem", Body: []byte(`{"Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"INPROGRESS"}}}`)}
	completion = &proxy.Request{Operation: "UpdateItem", Body: []byte(`{"Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"COMPLETED"}}}`)}
)

// struck sends requests through the faults, and returns which of them a fault was for.
func struck(f *rehearsal.Faults, requests ...*proxy.Request) (hit []bool) {
	for _, r := range requests {
		fault := f.Fault(r)
		if fault == nil {
			hit = append(hit, false)
			continue
		}
		fault(nil)
		hit = append(hit, true)
	}
	return hit
}

func nothing(*proxy.Call) {}

func TestFaults_StrikeOnceTheRequestsThatTheyMatch(t *testing.T) {
	only := func(r *proxy.Request, _ rehearsal.Access) bool { return r == takeover }
	for name, test := range map[string]struct {
		arm  rehearsal.Once
		want []bool // of lock, completion, takeover, completion, takeover
	}{
		"completion":                  {rehearsal.Once{Kind: rehearsal.Completion}, []bool{false, true, false, false, false}},
		"the second completion":       {rehearsal.Once{Kind: rehearsal.Completion, After: 1}, []bool{false, false, false, true, false}},
		"lock":                        {rehearsal.Once{Kind: rehearsal.Lock}, []bool{true, false, false, false, false}},
		"the second lock: a takeover": {rehearsal.Once{Kind: rehearsal.Lock, After: 1}, []bool{false, false, true, false, false}},
		"takeover":                    {rehearsal.Once{Kind: rehearsal.Takeover}, []bool{false, false, true, false, false}},
		"what matches":                {rehearsal.Once{Kind: rehearsal.Lock, Match: only}, []bool{false, false, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var f rehearsal.Faults
			changes := 0
			f.OnChange(func() { changes++ })
			test.arm.Name, test.arm.Fault = name, nothing
			f.Arm(test.arm)
			if got := f.Armed(); !slices.Equal(got, []string{name}) {
				t.Errorf("armed: %q", got)
			}
			if got := struck(&f, lock, completion, takeover, completion, takeover); !slices.Equal(got, test.want) {
				t.Errorf("it struck %v; want %v", got, test.want)
			}
			if got := f.Armed(); len(got) > 0 || changes != 2 {
				t.Errorf("armed afterwards: %q, and %d changes were told; want none, and 2", got, changes)
			}
		})
	}
}

func TestFaults_ReplaceAndDisarm(t *testing.T) {
	var f rehearsal.Faults
	f.Arm(rehearsal.Once{Name: "a", Kind: rehearsal.Lock, Fault: nothing})
	f.Arm(rehearsal.Once{Name: "b", Kind: rehearsal.Completion, Fault: nothing})
	f.Arm(rehearsal.Once{Name: "a", Kind: rehearsal.Takeover, Fault: nothing})
	if got := f.Armed(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("armed: %q", got)
	}
	f.Disarm("b")
	f.Disarm("c")
	if got := struck(&f, lock, completion, takeover); !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("it struck %v", got)
	}
}

// A state of the table is for every request that no armed fault is for.
func TestFaults_TableStates(t *testing.T) {
	var f rehearsal.Faults
	if err := f.SetTable("broken"); err == nil || !strings.Contains(err.Error(), `"throttled"`) {
		t.Errorf("an unknown state: %v", err)
	}
	database := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer database.Close()
	p, err := proxy.Start(database.URL, f.Fault)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // the test is over
	for state, want := range map[string]int{"throttled": 400, "unreachable": 0, "lost-replies": 0, rehearsal.Works: 200} {
		if err := f.SetTable(state); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		status := 0
		if resp, err := http.DefaultClient.Do(req); err == nil {
			status = resp.StatusCode
			_ = resp.Body.Close()
		}
		if status != want {
			t.Errorf("%s: status %d; want %d (0 is a cut connection)", state, status, want)
		}
	}
}
