package dynamostore

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// health sends a request to a handler.
func health(t *testing.T, h http.Handler, method string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/health", nil))
	return w
}

// Anybody may send the request, so the response contains no names.
func TestO3_TheHealthDocumentHasTheStatusAlone(t *testing.T) {
	for _, c := range []struct {
		described
		status int
		body   string
	}{
		{described{}, 200, `{"status":"pass"}`},
		{described{ttl: "DISABLED"}, 200, `{"status":"warn"}`},
		{described{denied: "PutItem"}, 503, `{"status":"fail"}`},
	} {
		client, _ := wireTo(c.described)
		check := NewHealthCheck(New(client, "records", quick), quiet)
		resp := health(t, check, "GET")
		if resp.Code != c.status || resp.Body.String() != c.body || resp.Header().Get("Content-Type") != "application/health+json" {
			t.Errorf("%d %s %s; want %d %s", resp.Code, resp.Header(), resp.Body, c.status, c.body)
		}
		resp = health(t, check, "HEAD")
		if resp.Code != c.status || resp.Body.Len() > 0 {
			t.Errorf("HEAD: %d %q; want %d and no body", resp.Code, resp.Body, c.status)
		}
	}
}

func TestO3_TheHealthDocumentHasDetailsForThoseWhoMaySeeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{denied: "DescribeTable"})
		w.after("GetItem", func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
			time.Sleep(1500 * time.Microsecond)
			return next.Do(r)
		})
		w.after("PutItem", refuseAs("AccessDeniedException"))
		resp := health(t, NewHealthCheck(New(client, "records", quick), quiet, func(o *HealthOptions) {
			o.Details = true
			o.Enlisted = []EnlistedTable{{Table: "accounts", Key: attributes{"id": str("x")}, Actions: []string{"PutItem"}}}
		}), "GET")
		var got struct {
			Status string
			Checks map[string][]map[string]any
		}
		if err := json.Unmarshal(resp.Body.Bytes(), &got); err != nil || resp.Code != 503 || got.Status != "fail" {
			t.Fatalf("%d %s (%v)", resp.Code, resp.Body, err)
		}
		if want := (map[string]any{"componentId": "records", "componentType": "datastore", "observedValue": 1.5, "observedUnit": "ms",
			"status": "pass", "time": "2000-01-01T00:00:00.0015Z"}); !reflect.DeepEqual(got.Checks["GetItem:responseTime"], []map[string]any{want}) {
			t.Errorf("GetItem: %v; want %v", got.Checks["GetItem:responseTime"], want)
		}
		puts := got.Checks["PutItem:responseTime"]
		if len(puts) != 2 || puts[0]["componentId"] != "records" || puts[1]["componentId"] != "accounts" ||
			puts[0]["code"] != "no_permission" || !strings.Contains(puts[0]["output"].(string), "add dynamodb:PutItem") || puts[1]["status"] != "pass" {
			t.Errorf("PutItem: %v; want that of records to fail, and that of accounts to pass", puts)
		}
		settings := got.Checks["settings:responseTime"]
		if _, has := settings[0]["status"]; has || settings[0]["output"] == nil {
			t.Errorf("settings: %v; want no status: they were not looked at", settings)
		}
	})
}

func TestO3_AHealthAnswerMayBeKeptAsLongAsItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		check := NewHealthCheck(New(client, "records", quick), quiet)
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "max-age=5"}, {1, "max-age=4"}, {4*time.Second - 1, "max-age=1"}, {time.Second - 1, "max-age=0"}, {1, "max-age=5"}} {
			time.Sleep(step.wait)
			if resp := health(t, check, "GET"); resp.Header().Get("Cache-Control") != step.want {
				t.Errorf("Cache-Control is %q; want %q", resp.Header().Get("Cache-Control"), step.want)
			}
		}
		time.Sleep(5 * time.Second)
		w.after("GetItem", hang)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		rec := httptest.NewRecorder()
		check.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/health", nil))
		if rec.Code != 503 || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v; want a 503 that nobody keeps: the client left", rec.Code, rec.Header())
		}
	})
}

func TestO3_AHealthCheckIsOnlyRead(t *testing.T) {
	client, w := wireTo(described{})
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		resp := health(t, NewHealthCheck(New(client, "records", quick), quiet), method)
		if resp.Code != 405 || resp.Header().Get("Allow") != "GET, HEAD" || w.trips() != 0 {
			t.Errorf("%s: %d %v after %d attempts; want 405 and none", method, resp.Code, resp.Header(), w.trips())
		}
	}
}
