// Package environment is what the functions need from theirs.
package environment

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Environment is read once, when the function starts.
type Environment struct {
	AWS      aws.Config       // to make further clients of
	DynamoDB *dynamodb.Client // one for the life of the process: connections are dear
	Demo     bool             // DEMO=1, see functions/payments/demo.go and package demo; never set where money is real

	values  map[string]string
	metrics lambdaidem.Observer // see Observed
}

// Names of variables that template.yaml sets.
const (
	IdempotencyTable   = "IDEMPOTENCY_TABLE"       // the table of idempotency records
	PaymentsTable      = "PAYMENTS_TABLE"          // the table of payments and refunds
	AccountsTable      = "ACCOUNTS_TABLE"          // the table of accounts
	TransfersTable     = "TRANSFERS_TABLE"         // the table of transfers
	ReceiptsTable      = "RECEIPTS_TABLE"          // the table of receipts
	NotificationsQueue = "NOTIFICATIONS_QUEUE_URL" // URL of the queue of notifications
	ClearingURL        = "CLEARING_URL"            // base URL of the clearing service
	MailerURL          = "MAILER_URL"              // base URL of the mailer

	serviceName = "SERVICE_NAME" // what the functions are a part of: a dimension of their metrics
)

// Get returns the value of a variable that Load was told of.
func (e Environment) Get(name string) string { return e.values[name] }

// Service returns what the functions are a part of: a dimension of their metrics.
func (e Environment) Service() string { return e.values[serviceName] }

// Load reads the environment: the variables with these names, all required, and the
// service's. Its error names every one that is missing.
func Load(ctx context.Context, names ...string) (Environment, error) {
	e := Environment{Demo: os.Getenv("DEMO") == "1", values: map[string]string{}}
	var problems []error
	for _, name := range append([]string{serviceName}, names...) {
		e.values[name] = os.Getenv(name)
		if e.values[name] == "" {
			problems = append(problems, fmt.Errorf("%s is not set; template.yaml says what it is", name))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("load the AWS configuration: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return Environment{}, err
	}
	e.AWS, e.metrics = cfg, newMetrics(e.Get(serviceName))
	e.DynamoDB = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		// DynamoDB Local sends no checksum with an error answer; the SDK takes that
		// for 0 and would log a warning for each.
		o.DisableValidateResponseChecksum = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != ""
	})
	return e, nil
}
