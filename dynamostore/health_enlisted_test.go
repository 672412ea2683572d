package dynamostore

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// enlistedOn returns a HealthCheck of one action on the table accounts.
func enlistedOn(client *dynamodb.Client, action string) *HealthCheck {
	return NewHealthCheck(New(client, "records", quick), quiet, func(o *HealthOptions) {
		o.Enlisted = []EnlistedTable{{Table: "accounts", Key: attributes{"id": str("x")}, Actions: []string{action}}}
	})
}

func TestO3_AHealthCheckCoversEnlistedTables(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  fault
		status HealthStatus
		code   TableCode
		says   string
	}{
		{"refused by the condition", pass, HealthPass, "", ""},
		{"busy", cancelledBy("TransactionConflict"), HealthPass, "", ""},
		{"not allowed", apiError("AccessDeniedException"), HealthFail, NoPermission, "add dynamodb:DeleteItem to"},
		{"no table", apiError("ResourceNotFoundException"), HealthFail, NoTable, "no such table"},
		{"another key", cancelledBy("ValidationError"), HealthFail, WrongKey, "the table's own key"},
		{"another key, refused whole", apiError("ValidationException"), HealthFail, WrongKey, "the table's own key"},
		{"throttled", cancelledBy("ThrottlingError"), HealthWarn, Throttled, "throttled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, w := wireTo(described{})
			w.after("TransactWriteItems", c.fault)
			h := enlistedOn(client, "DeleteItem").Check(t.Context())
			got := checkOf(t, h, "DeleteItem")
			if h.Status != c.status || got.Status != c.status || got.Code != c.code || got.Table != "accounts" || !strings.Contains(got.Detail, c.says) {
				t.Errorf("%s: %+v", h.Status, got)
			}
			if c.code != "" && !strings.Contains(got.Detail, `"accounts"`) {
				t.Errorf("%q doesn't name the table", got.Detail)
			}
			if settings := checkOf(t, h, "settings"); settings.Status != HealthPass {
				t.Errorf("what is wrong with one table kept the other from being looked at: %+v", settings)
			}
		})
	}
	strong, _ := wireTo(described{ttl: "DISABLED", members: `,"Replicas":[{"RegionName":"us-east-1"}],"MultiRegionConsistency":"STRONG"`})
	if got := checkOf(t, enlistedOn(strong, "PutItem").Check(t.Context()), "settings"); got.Code != NoTransactions || got.Status != HealthFail {
		t.Errorf("D3: %+v; want fail: no write can be enlisted", got)
	}
}
