// Package environment reads the environment variables of the functions, and makes the
// clients and the metrics that all functions share.
package environment

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Environment is the configuration of a function. Load reads it once, when the function
// starts.
type Environment struct {
	AWS      aws.Config       // for clients of other services
	DynamoDB *dynamodb.Client // one client for the life of the process, so that its connections are reused
	Demo     bool             // DEMO=1: requests may ask for failures; never set in production

	values  map[string]string   // variables by name; none is empty
	metrics lambdaidem.Observer // counts the outcomes of guarded calls
}

// The names of environment variables that template.yaml sets.
const (
	IdempotencyTable   = "IDEMPOTENCY_TABLE"       // table of idempotency records
	PaymentsTable      = "PAYMENTS_TABLE"          // table of payments and refunds
	AccountsTable      = "ACCOUNTS_TABLE"          // table of accounts
	TransfersTable     = "TRANSFERS_TABLE"         // table of transfers
	ReceiptsTable      = "RECEIPTS_TABLE"          // table of receipts
	NotificationsQueue = "NOTIFICATIONS_QUEUE_URL" // URL of the queue of notifications
	ClearingURL        = "CLEARING_URL"            // base URL of the clearing service
	MailerURL          = "MAILER_URL"              // base URL of the mailer

	serviceName = "SERVICE_NAME" // name of the service that the functions belong to: a dimension of their metrics
)

// Get returns the value of a variable whose name was passed to Load.
func (e Environment) Get(name string) string { return e.values[name] }

// Service returns the name of the service that the functions belong to. It is a dimension
// of their metrics.
func (e Environment) Service() string { return e.values[serviceName] }

// Load reads the variables with these names and SERVICE_NAME. All of them are required. The
// error names every variable that is missing.
func Load(ctx context.Context, names ...string) (Environment, error) {
	e := Environment{Demo: os.Getenv("DEMO") == "1", values: map[string]string{}}
	var problems []error
	for _, name := range append([]string{serviceName}, names...) {
		e.values[name] = os.Getenv(name)
		if e.values[name] == "" {
			problems = append(problems, fmt.Errorf("%s is not set; template.yaml says what it is", name))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(dynamostore.HTTPClient()))
	if err != nil {
		problems = append(problems, fmt.Errorf("load the AWS configuration: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return Environment{}, err
	}
	e.AWS, e.metrics = cfg, newMetrics(e.Get(serviceName))
	e.DynamoDB = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		// DynamoDB Local sends error replies without a checksum. The SDK would log a
		// warning for each of them, because it takes an absent checksum for 0.
		o.DisableValidateResponseChecksum = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != ""
	})
	return e, nil
}
