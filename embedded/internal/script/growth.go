package script

import (
	"reflect"
	"runtime/metrics"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// A script can double a string or an array with each operation, and so allocate gigabytes before a goroutine that looks
// at the heap periodically has run once on a loaded machine. Therefore the script itself calls a function after each
// operation that can create a large value.

// checkName is the global name of that function. No script can contain it.
const checkName = " check"

// check inserts the calls below a node of the syntax tree. Optional chains cannot be split; the goroutine limits them.
func check(v reflect.Value, seen map[any]bool) {
	switch v.Kind() {
	case reflect.Interface:
		check(v.Elem(), seen)
		e, _ := v.Interface().(ast.Expression)
		if grows(e) && v.Type() == reflect.TypeFor[ast.Expression]() {
			called := &ast.CallExpression{Callee: &ast.Identifier{Name: checkName, Idx: e.Idx0()},
				ArgumentList: []ast.Expression{e}}
			v.Set(reflect.ValueOf(called))
		}
	case reflect.Pointer:
		if _, chain := v.Interface().(*ast.OptionalChain); !chain && !v.IsNil() && !seen[v.Interface()] {
			seen[v.Interface()] = true
			check(v.Elem(), seen)
		}
	case reflect.Struct:
		for i, field := range reflect.VisibleFields(v.Type()) {
			if field.IsExported() && len(field.Index) == 1 {
				check(v.Field(i), seen)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			check(v.Index(i), seen)
		}
	}
}

// grows reports whether the value of an expression can be larger than its parts.
func grows(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.BinaryExpression:
		return e.Operator == token.PLUS
	case *ast.AssignExpression:
		return e.Operator == token.PLUS
	case *ast.CallExpression, *ast.TemplateLiteral:
		return true
	}
	return false
}

// heap returns the size of the objects in the heap of the process.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func (c *execution) grown() bool {
	now, least := heap(), c.heap.Load()
	if now < least {
		c.heap.CompareAndSwap(least, now)
	}
	return now > least+maxHeap
}

// checked is the function that scripts call with each value that can be large.
func (c *execution) checked(call goja.FunctionCall) goja.Value {
	if c.grown() {
		c.vm.Interrupt(errLimit)
	}
	return call.Argument(0)
}
