package window

import (
	"context"
	"fmt"
	"strings"
)

// operatorCommands returns commands for a shell by which an operator decides about a held record, or
// "" if the template has no table that records can be in.
func (w *Window) operatorCommands(ctx context.Context) string {
	db := w.stack.Database()
	credentials, err := db.Config().Credentials.Retrieve(ctx)
	if err != nil {
		return ""
	}
	for _, table := range w.stack.Template().Tables {
		if len(table.Key) != 1 || table.Key[0].Name != "id" || table.TTLAttribute == "" {
			continue
		}
		leases := "idem leases --scan"
		if len(table.Indexes) > 0 {
			leases = "idem leases --lease-index " + table.Indexes[0].Name
		}
		return strings.Join([]string{
			"go install -mod=mod github.com/lambdaidem/toolkit/cmd/idem",
			"export AWS_ENDPOINT_URL_DYNAMODB=" + db.Endpoint(),
			fmt.Sprintf("export AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s", db.Config().Region, credentials.AccessKeyID, credentials.SecretAccessKey),
			"export IDEM_TABLE=" + table.Name,
			leases,
			"idem show RECORD",
			"idem release RECORD --token TOKEN --reason 'tried by hand' --yes",
		}, "\n")
	}
	return ""
}
