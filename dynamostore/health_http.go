package dynamostore

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// healthJSON is the media type of draft-inadarei-api-health-check-05.
const healthJSON = "application/health+json"

// healthDocument is section 3 of the draft.
type healthDocument struct {
	Status HealthStatus                 `json:"status"`
	Checks map[string][]healthComponent `json:"checks,omitempty"`
}

// healthComponent is section 4 of the draft. Code is a key of our own (4.10).
type healthComponent struct {
	ComponentID   string       `json:"componentId,omitempty"`
	ComponentType string       `json:"componentType"`
	ObservedValue float64      `json:"observedValue"`
	ObservedUnit  string       `json:"observedUnit"`
	Status        HealthStatus `json:"status,omitempty"` // absent: not looked at
	Time          string       `json:"time"`
	Output        string       `json:"output,omitempty"`
	Code          TableCode    `json:"code,omitempty"`
}

// ServeHTTP answers GET and HEAD with how the store is, as a document of
// draft-inadarei-api-health-check-05: 200 for pass and warn, 503 for fail, with
// Cache-Control: max-age, the seconds that the answer still holds. Other methods get
// a 405.
//
// The document has the status and nothing else, unless HealthOptions.Details is
// set: the draft's section 6 warns that what is wrong with a service helps who
// attacks it. What is wrong is in the log. With Details there is a check
// "ACTION:responseTime" for each action, in milliseconds, with the table, a code
// and what to do; a check without a status was not looked at.
func (c *HealthCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	h := c.Check(r.Context())
	document := healthDocument{Status: h.Status}
	if c.opts.Details {
		document.Checks = h.components()
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings and finite numbers: can't happen
	}
	w.Header().Set("Content-Type", healthJSON)
	w.Header().Set("Cache-Control", h.cacheControl())
	w.Header().Set("X-Content-Type-Options", "nosniff")
	status := http.StatusOK
	if h.Status == HealthFail {
		status = http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a client that has left needs no answer
	}
}

func (h Health) cacheControl() string {
	if h.Until.IsZero() {
		return "no-store"
	}
	left := max(0, h.Until.Sub(wall()))
	return "max-age=" + strconv.Itoa(int(left/time.Second))
}

func (h Health) components() map[string][]healthComponent {
	components := map[string][]healthComponent{}
	for _, check := range h.Checks {
		key := check.Name + ":responseTime"
		components[key] = append(components[key], healthComponent{
			ComponentID: check.Table, ComponentType: "datastore",
			ObservedValue: float64(check.Latency.Microseconds()) / 1000, ObservedUnit: "ms",
			Status: check.Status, Time: check.Time.UTC().Format(time.RFC3339Nano),
			Output: check.Detail, Code: check.Code,
		})
	}
	return components
}
