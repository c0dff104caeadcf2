# PSScriptAnalyzer's default rules hold for the scripts below templates but for these, each with its reason.
@{
    ExcludeRules = @(
        # -WhatIf and -Confirm have no place in a script that nobody runs by hand: `winboot plan` is the preview.
        'PSUseShouldProcessForStateChangingFunctions'
        # A function that runs a step's block, or belongs to a family with one signature, takes what only some of them read.
        'PSReviewUnusedParameter'
        # A table named $Credential holds paths and names, never a password: secrets are SecureStrings in $Secrets.
        'PSAvoidUsingPlainTextForPassword'
        'PSUsePSCredentialType'
    )
}
