package ddblocal_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func ExampleStart() {
	ctx := context.Background()
	server, err := ddblocal.Start(ctx, func(o *ddblocal.Options) { o.Own = true })
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := server.Client().ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil {
		fmt.Println(err)
	} else {
		fmt.Println("tables:", len(out.TableNames))
	}
	if err := server.Stop(); err != nil {
		fmt.Println(err)
	}
	// Output: tables: 0
}
