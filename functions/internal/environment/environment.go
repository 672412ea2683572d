// Package environment is what the functions need from theirs.
package environment

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Environment is read once, when the function starts.
type Environment struct {
	IdempotencyTable string           // from IDEMPOTENCY_TABLE
	PaymentsTable    string           // from PAYMENTS_TABLE
	DynamoDB         *dynamodb.Client // one for the life of the process: connections are dear
	Demo             bool             // DEMO=1, see functions/payments/demo.go; never set where money is real
}

// Load reads the environment. Its error names every variable that is missing.
func Load(ctx context.Context) (Environment, error) {
	e := Environment{
		IdempotencyTable: os.Getenv("IDEMPOTENCY_TABLE"),
		PaymentsTable:    os.Getenv("PAYMENTS_TABLE"),
		Demo:             os.Getenv("DEMO") == "1",
	}
	var problems []error
	if e.IdempotencyTable == "" {
		problems = append(problems, errors.New("IDEMPOTENCY_TABLE is not set: set it to the name of the table of idempotency records"))
	}
	if e.PaymentsTable == "" {
		problems = append(problems, errors.New("PAYMENTS_TABLE is not set: set it to the name of the table of payments"))
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("load the AWS configuration: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return Environment{}, err
	}
	e.DynamoDB = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		// DynamoDB Local sends no checksum with an error answer; the SDK takes that
		// for 0 and would log a warning for each.
		o.DisableValidateResponseChecksum = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != ""
	})
	return e, nil
}
