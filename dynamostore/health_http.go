package dynamostore

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// healthJSON is the media type of draft-inadarei-api-health-check-05.
const healthJSON = "application/health+json"

// healthDocument is the JSON body of a health response, as in section 3 of
// draft-inadarei-api-health-check-05.
type healthDocument struct {
	Status HealthStatus                 `json:"status"`
	Checks map[string][]healthComponent `json:"checks,omitempty"`
}

// healthComponent is one check in the body of a health response, as in section 4 of
// draft-inadarei-api-health-check-05. Code is an additional key, which section 4.10 allows.
type healthComponent struct {
	ComponentID   string       `json:"componentId,omitempty"`
	ComponentType string       `json:"componentType"`
	ObservedValue float64      `json:"observedValue"`
	ObservedUnit  string       `json:"observedUnit"`
	Status        HealthStatus `json:"status,omitempty"` // absent if the check was not made
	Time          string       `json:"time"`
	Output        string       `json:"output,omitempty"`
	Code          TableCode    `json:"code,omitempty"`
}

// ServeHTTP responds to GET and HEAD with the health of the store, in the format of
// draft-inadarei-api-health-check-05. The status code is 200 for pass and warn, 503 for fail, and
// 405 for other methods. Cache-Control is max-age with the number of seconds until the result
// expires, or no-store if the result is not cached.
//
// By default, the response contains only the status, because details of a problem help attackers
// (section 6 of the draft). With HealthOptions.Details, the response also has the member "checks",
// which lists each [Check] under a name such as "GetItem:responseTime". A check that was not made
// has no status.
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
		panic(err) // can't happen: the document has only strings and finite numbers
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
		_, _ = w.Write(body) // an error means that the client has closed the connection
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
