#!/bin/sh
# Calls the compiler @COMPILER@, or the one that @VARIABLE@ names, with the options that MPI programs need.
# Instead of compiling, these options print, quoted for a shell:
#   -show, -showme           the whole command; with -c and the like, without the options of the linker
#   -showme:compile, -showme:link, -showme:command       options of the compiler; of the linker; the compiler
#   -showme:incdirs, -showme:libdirs, -showme:libs       folders and libraries by themselves
#   -compile_info, -link_info                            the command that compiles; the one that links
# -showme may have two dashes.

set -f
prefix=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
compiler=${@VARIABLE@:-@COMPILER@}

# Prints words for a shell. CMake reads them too, and takes only double quotation marks, behind the letters of an option.
quoted() {
    between=
    for word do
        case $word in
        '' | *[!A-Za-z0-9_./:=,+@%-]*)
            case $word in
            -I*) letters=-I ;;
            -L*) letters=-L ;;
            -Wl,*) letters=-Wl, ;;
            *) letters= ;;
            esac
            word=$(printf '%s\n' "${word#"$letters"}" | sed 's/[\\"$`]/\\&/g')
            word=$letters\"$word\" ;;
        esac
        printf '%s%s' "$between" "$word"
        between=' '
    done
    echo
}

show= compiles=yes links=yes has_input=no value=no
for word do
    shift
    if [ $value = yes ]; then
        # The value of the option before it, whatever it looks like.
        value=no
        set -- "$@" "$word"
        continue
    fi
    case $word in
    -show | -showme | --showme) show=all; continue ;;
    -showme:* | --showme:*)
        show=${word#*:}
        case $show in
        compile | link | command | incdirs | libdirs | libs) continue ;;
        esac
        echo "${0##*/}: $word: it can be compile, link, command, incdirs, libdirs or libs" >&2
        exit 1 ;;
    -compile_info | -compile-info) show=all links=no; continue ;;
    -link_info | -link-info) show=all compiles=no; continue ;;
    -c | -S | -E | -M | -MM | -fsyntax-only) links=no ;;
    -Xlinker | -Xpreprocessor | -Xassembler | -Xclang | -o | -x) value=yes ;;
    -l* | -) has_input=yes ;;
    -*) ;;
    *) has_input=yes ;;
    esac
    set -- "$@" "$word"
done

case $show in
compile) quoted "-I$prefix/include"; exit ;;
link) quoted "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -lmpi_abi; exit ;;
command) echo "$compiler"; exit ;;
incdirs) quoted "$prefix/include"; exit ;;
libdirs) quoted "$prefix/lib"; exit ;;
libs) echo mpi_abi; exit ;;
esac
if [ $# = 0 ] && [ -z "$show" ]; then
    echo "${0##*/}: no arguments; it takes those of $compiler, and -show" >&2
    exit 1
fi
# Nothing to link: a question such as -v or --version.
[ $has_input = yes ] || [ -n "$show" ] || links=no
[ $compiles = no ] || set -- "-I$prefix/include" "$@"
[ $links = no ] || set -- "$@" "-L$prefix/lib" "-Wl,-rpath,$prefix/lib" -lmpi_abi
# More words, such as those of ccache, may follow the compiler's name.
if [ -n "$show" ]; then
    printf '%s ' "$compiler"
    quoted "$@"
else
    exec $compiler "$@"
fi
