package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// startDatabase starts DynamoDB Local and creates the tables.
func (s *Stack) startDatabase(ctx context.Context, options Options) error {
	say(options.Progress, "starting DynamoDB Local")
	var err error
	s.database, err = ddblocal.Start(ctx, func(o *ddblocal.Options) {
		o.Progress = options.Progress
		if options.Database != nil {
			options.Database(o)
		}
	})
	if err != nil {
		return err
	}
	if !s.database.Owned() {
		// Other programs may use the server too, so the tables need generated names, as
		// CloudFormation generates them.
		s.foreignDatabase = true
		if err := s.readAgain(options); err != nil {
			return err
		}
	}
	return template.CreateTables(ctx, s.database.Client(), s.template.Tables)
}

func (s *Stack) deleteTables() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, t := range s.template.Tables {
		_, err := s.database.Client().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(t.Name)})
		if missing := (*types.ResourceNotFoundException)(nil); err != nil && !errors.As(err, &missing) { // it may not have been created
			errs = append(errs, fmt.Errorf("delete the table %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}
