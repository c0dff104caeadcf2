"""What the parser says: PowerShell's error ids and their English wording (`%s` is where an argument goes).

The last group is ours: syntax that newer PowerShells have and Windows PowerShell 5.1 has not, refused by name.
"""

from __future__ import annotations

from typing import Final

_FOREACH_FORM = "\nThe correct form is: foreach ($a in $b) {...}"
_IN_DATA = "not allowed in restricted language mode or a Data section."
_DATA_VARIABLES = "$PSCulture, $PSUICulture, $true, $false, $null"

MESSAGES: Final[dict[str, str]] = {
    # Tokens
    "BadNumericConstant": "The numeric constant %s is not valid.",
    "EmptyVariableReference": (
        "An empty ${} variable reference was found. A name is required inside the braces."
    ),
    "IncompleteDollarSubexpressionReference": "$(subexpression) is missing the closing ')'.",
    "IncompleteDollarVariableReference": "${{variable}} reference starting is missing the closing '}}'.",
    "IncompleteString": "Incomplete string token.",
    "InvalidBracedVariableReference": "Variable reference is not valid. The variable name is missing.",
    "InvalidVariableReference": (
        "Variable reference is not valid. '$' was not followed by a valid variable name character. "
        "Consider using ${} to delimit the name."
    ),
    "InvalidVariableReferenceWithDrive": (
        "Variable reference is not valid. ':' was not followed by a valid variable name character. "
        "Consider using ${} to delimit the name."
    ),
    "MissingTerminatorMultiLineComment": "The terminator '#>' is missing from the multiline comment.",
    "OpenBraceNeedsToBeBackTickedInVariableName": "Use `{ instead of { in variable names.",
    "TerminatorExpectedAtEndOfString": "The string is missing the terminator: %s.",
    "UnexpectedCharactersAfterHereStringHeader": (
        "No characters are allowed after a here-string header but before the end of the line."
    ),
    "UnrecognizedToken": "Unrecognized token in source text.",
    "WhitespaceBeforeHereStringFooter": "White space is not allowed before the string terminator.",
    # Script blocks, functions, parameters
    "DuplicateScriptCommandClause": "Script command clause '%s' has already been defined.",
    "InvalidFunctionParameter": (
        "Parameter declarations are a comma-separated list of variable names with optional "
        "initializer expressions."
    ),
    "MissingEndCurlyBrace": "Missing closing '}' in statement block or type definition.",
    "MissingEndParenthesisInFunctionParameterList": "Missing ')' in function parameter list.",
    "MissingFunctionBody": "Missing function body in function declaration.",
    "MissingNamedBlocks": (
        "unexpected token '%s', expected 'begin', 'process', 'end', 'clean', or 'dynamicparam'."
    ),
    "MissingNamedStatementBlock": "Missing statement block after '%s'.",
    "MissingNameAfterKeyword": "Missing name after %s keyword.",
    "TypeNotAllowedBeforeParam": "Unexpected type [%s] was found in the parameter statement.",
    "OnlyOneParameterListAllowed": (
        "The param statement cannot be used if arguments were specified in the function declaration."
    ),
    "DuplicateFormalParameter": "Duplicate parameter $%s in parameter list.",
    # Attributes and types
    "DuplicateNamedArgument": "Duplicate named arguments '%s' are not allowed.",
    "EndSquareBracketExpectedAtEndOfAttribute": "Missing ] at end of attribute or type literal.",
    "EndSquareBracketExpectedAtEndOfType": "Missing ] at end of type token.",
    "MissingAssemblyNameSpecification": "The type name is missing the assembly name specification.",
    "MissingExpressionInNamedArgument": "Missing statement after '=' in named argument.",
    "MissingTypename": "Missing type name after '['.",
    "ParameterAttributeArgumentNeedsToBeConstantOrScriptBlock": (
        "Attribute argument must be a constant or a script block."
    ),
    "UnexpectedAttribute": "Unexpected attribute '%s'.",
    # Statements
    "ControlLeavingFinally": "Flow of control cannot leave a Finally block.",
    "EmptyCatchNotLast": "Catch block must be the last catch block.",
    "ExceptionTypeAlreadyCaught": "Exception type %s is already handled by a previous handler.",
    "IfStatementMissingCondition": "Missing condition in if statement after '%s ('.",
    "InvalidForeachFlag": "The parameter %s is not valid for the foreach statement.",
    "InvalidSwitchFlag": "The parameter %s is not valid for the switch statement.",
    "KeywordParameterReservedForFutureUse": "The %s '-%s' parameter is reserved for future use.",
    "MissingCatchHandlerBlock": "The Catch block is missing its statement block.",
    "MissingCatchOrFinally": "The Try statement is missing its Catch or Finally block.",
    "MissingCurlyBraceInSwitchStatement": "Missing '{' in switch statement.",
    "MissingEndParenthesisAfterForeach": (
        "Missing closing ')' after expression part of foreach loop." + _FOREACH_FORM
    ),
    "MissingEndParenthesisAfterStatement": "Missing closing ')' after expression in '%s' statement.",
    "MissingEndParenthesisInSwitchStatement": "Missing ')' after expression in switch statement.",
    "MissingExpressionAfterKeyword": "Missing expression after '%s' in loop.",
    "MissingFilenameOption": (
        "Cannot process the 'switch' statement because of a missing file name argument to the -file option."
    ),
    "MissingFinallyStatementBlock": "The Finally block is missing its statement block.",
    "MissingForeachExpression": "Missing expression in foreach loop." + _FOREACH_FORM,
    "MissingForeachStatement": "Missing statement body in foreach loop." + _FOREACH_FORM,
    "MissingInInForeach": "Missing 'in' after variable in foreach loop." + _FOREACH_FORM,
    "MissingLoopStatement": "Missing statement body in %s loop.",
    "MissingOpenParenthesisAfterKeyword": "Missing opening '(' after keyword '%s'.",
    "MissingOpenParenthesisInIfStatement": "Missing '(' after '%s' in if statement.",
    "MissingStatementBlock": "Missing statement block after %s ( condition ).",
    "MissingStatementBlockAfterElse": "Missing statement block after 'else' keyword.",
    "MissingSwitchConditionExpression": "Missing condition in switch statement clause.",
    "MissingSwitchStatementClause": "Missing statement block in switch statement clause.",
    "MissingTrapStatement": "The 'trap' statement was incomplete. A trap statement requires a body.",
    "MissingTryStatementBlock": "The Try statement is missing its statement block.",
    "MissingTypeLiteralToken": "Missing type literal.",
    "MissingVariableNameAfterForeach": "Missing variable name after foreach." + _FOREACH_FORM,
    "MissingWhileOrUntilInDoWhile": "Missing while or until keyword in do loop.",
    "MultipleSwitchDefaultClauses": "A switch statement can have only one default clause.",
    "PipelineValueRequired": (
        "A switch statement must have one of the following:  '-file file_name' or '( expression )'."
    ),
    "ReservedKeywordNotAllowed": "The '%s' keyword is not supported in this version of the language.",
    "ScriptTooComplicated": "Processing was stopped because the script is too complex.",
    "UnexpectedKeyword": "Unexpected keyword '%s'.",
    "UsingMustBeAtStartOfScript": (
        "A 'using' statement must appear before any other statements in a script."
    ),
    "InvalidUsingStatement": "The 'using' statement is not valid: it names a namespace, module or assembly.",
    "WorkflowNotSupportedInPowerShellCore": "Workflow is not supported in PowerShell 6+.",
    # Data sections
    "CmdletNotInAllowedListForDataSection": "The command '%s' is " + _IN_DATA,
    "InvalidParameterForDataSectionStatement": (
        'The "%s" parameter of the Data section is not valid. '
        "The valid Data section parameter is SupportedCommand."
    ),
    "MissingStatementBlockForDataSection": "The Data section is missing its statement block.",
    "MissingValueForSupportedCommandInDataSectionStatement": (
        "The SupportedCommand parameter of the Data section is missing a value. "
        "Supply a cmdlet or function name to the parameter."
    ),
    "ArrayReferenceNotSupportedInDataSection": "Array references are " + _IN_DATA,
    "AssignmentStatementNotSupportedInDataSection": "Assignment statements are " + _IN_DATA,
    "ExpandableStringNotSupportedInDataSection": "Expandable strings are " + _IN_DATA,
    "FunctionDeclarationNotSupportedInDataSection": "Function declarations are " + _IN_DATA,
    "MethodCallNotSupportedInDataSection": "Method calls are " + _IN_DATA,
    "PropertyReferenceNotSupportedInDataSection": "Property references are " + _IN_DATA,
    "ScriptBlockNotSupportedInDataSection": "Script block literals are " + _IN_DATA,
    "RedirectionNotSupportedInDataSection": "Redirection is " + _IN_DATA,
    "FlowControlStatementNotSupportedInDataSection": (
        "Flow control statements such as Break, Continue, Return, Exit, and Throw are " + _IN_DATA
    ),
    "ForeachStatementNotSupportedInDataSection": "Foreach statements are " + _IN_DATA,
    "ForWhileStatementNotSupportedInDataSection": "For and While statements are " + _IN_DATA,
    "DoWhileStatementNotSupportedInDataSection": "The Do and While statements are " + _IN_DATA,
    "SwitchStatementNotSupportedInDataSection": "The switch statement is " + _IN_DATA,
    "TrapStatementNotSupportedInDataSection": "The Trap statement is " + _IN_DATA,
    "TryStatementNotSupportedInDataSection": "The Try statement is " + _IN_DATA,
    "DataSectionStatementNotSupportedInDataSection": (
        "The data statement is not allowed in restricted language mode or another Data section."
    ),
    "VariableReferenceNotSupportedInDataSection": (
        "A variable that cannot be referenced in restricted language mode or a Data section is being "
        f"referenced. Variables that can be referenced include the following: {_DATA_VARIABLES}."
    ),
    # Pipelines and commands
    "AmpersandNotAllowed": (
        "The ampersand (&) character is not allowed. The & operator is reserved for future use; "
        'wrap an ampersand in double quotation marks ("&") to pass it as part of a string.'
    ),
    "EmptyPipeElement": "An empty pipe element is not allowed.",
    "ExpressionsMustBeFirstInPipeline": ("Expressions are only allowed as the first element of a pipeline."),
    "InvalidEndOfLine": "The token '%s' is not a valid statement separator in this version.",
    "MissingArgument": "Missing argument in parameter list.",
    "MissingExpression": "Missing expression after '%s' in pipeline element.",
    "MissingFileSpecification": "Missing file specification after redirection operator.",
    "ParameterRequiresArgument": "Parameter %s requires an argument.",
    "RedirectionNotSupported": "The '%s' operator is reserved for future use.",
    "StreamAlreadyRedirected": "The %s for this command is already redirected.",
    "UnexpectedToken": "Unexpected token '%s' in expression or statement.",
    # Expressions
    "DuplicateKeyInHashLiteral": "Duplicate keys '%s' are not allowed in hash literals.",
    "ExpectedExpression": "An expression was expected after '('.",
    "ExpectedValueExpression": "You must provide a value expression following the '%s' operator.",
    "InvalidLeftHandSide": (
        "The assignment expression is not valid. The input to an assignment operator must be an object that "
        "is able to accept assignments, such as a variable or a property."
    ),
    "MissingArrayIndexExpression": "Array index expression is missing or not valid.",
    "MissingEndParenthesisInExpression": "Missing closing ')' in expression.",
    "MissingEndParenthesisInMethodCall": "Missing ')' in method call.",
    "MissingEndParenthesisInSubexpression": "Missing closing ')' in subexpression.",
    "MissingEndSquareBracket": "Missing ']' after array index expression.",
    "MissingEqualsInHashLiteral": "Missing '=' operator after key in hash literal.",
    "MissingExpressionAfterOperator": "Missing expression after unary operator '%s'.",
    "MissingExpressionAfterToken": "Missing expression after '%s'.",
    "MissingPropertyName": "Missing property name after reference operator.",
    "MissingStatementInHashLiteral": "Missing statement after '=' in hash literal.",
    "OperatorRequiresVariableOrProperty": "The '%s' operator works only on variables or on properties.",
    "OrderedAttributeOnlyOnHashLiteralNode": (
        "The ordered attribute can be specified only on a hash literal node."
    ),
    "SplattingNotPermitted": (
        "The splatting operator '@' cannot be used to reference variables in an expression. '@%s' can be "
        "used only as an argument to a command. To reference variables in an expression use '$%s'."
    ),
    "SplattingNotPermittedInArgumentList": (
        "Splatted variables like '@%s' cannot be part of a comma-separated list of arguments."
    ),
    "VoidTypeConstraintNotAllowed": (
        "[void] cannot be used as a parameter type, or on the left side of an assignment."
    ),
    # #requires
    "ParameterCannotHaveArgument": "Parameter %s cannot have an argument.",
    "RequiresVersionInvalid": (
        "The argument for the Version parameter is not valid. Specify a valid PowerShell version, in the "
        "format major.minor version."
    ),
    "ScriptRequiresInvalidFormat": "The #requires statement is not in the correct format.",
    # What Windows PowerShell 5.1 has not, or winboot does not take
    "NewerNumberNotSupported": (
        "The number %s has a suffix or a prefix that Windows PowerShell 5.1 does not know."
    ),
    "NewerEscapeNotSupported": "The escape `%s is not known to Windows PowerShell 5.1.",
    "CleanBlockNotSupported": "Windows PowerShell 5.1 has no clean block.",
    "TypeDefinitionNotSupported": (
        "The %s statement is not supported: a script for a node is plain functions and statements."
    ),
}
