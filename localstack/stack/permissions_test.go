package stack

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// A function whose role lacks permissions is refused the same requests as by AWS, unless
// Options.NoIAM is set. If only AWS knows the role's policies, no request is refused, and Start
// logs this.
func TestPermissionsOfTheRole(t *testing.T) {
	database := ddblocal.ForTest(t)
	t.Cleanup(database.CloseIdleConnections)
	t.Setenv(ddblocal.EndpointVariable, database.Endpoint())
	for name, test := range map[string]struct {
		noIAM   bool
		unknown []string
		status  int
		warns   bool // the output of Start or the log names what is not allowed, or not checked
	}{
		"refused":                 {false, nil, http.StatusServiceUnavailable, true},
		"not checked":             {true, nil, http.StatusCreated, false},
		"known only to AWS":       {false, []string{"its role is known only to AWS"}, http.StatusCreated, true},
		"as AWS knows, unchecked": {true, []string{"its role is known only to AWS"}, http.StatusCreated, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &syncBuffer{}
			s, err := Start(t.Context(), Options{
				Template: filepath.Join("testdata", "shop", "template.yaml"), Parameters: map[string]string{"Shop": "corner"},
				Change: func(sam *template.Template) {
					sam.Function("OrdersFunction").Role.Statements, sam.Function("OrdersFunction").Role.Unknown = nil, test.unknown
				},
				NoIAM: test.noIAM, Progress: log, FunctionLog: log,
			})
			if err != nil {
				t.Fatal(err)
			}
			got := shop{s, log}.order(t, "/orders", "order-1")
			if (s.IAM() == nil) != test.noIAM {
				t.Errorf("IAM = %v", s.IAM())
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if got.status != test.status {
				t.Errorf("the order got %d %s; want %d", got.status, got.body, test.status)
			}
			if warns := strings.Contains(log.String(), "iam: "); warns != test.warns {
				t.Errorf("the log is\n%s", log)
			}
		})
	}
}
