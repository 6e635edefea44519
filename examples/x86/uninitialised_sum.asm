; Words that nobody has set, and what they add up to: of all beginnings a few are bad, and no number in the program
; is one of them.
; expect: sc violated (explicit: undecided), tso violated (explicit: undecided), pso violated (explicit: undecided)

begin shared_data
    Word dd ?
end shared_data

begin unsafe_prop
    eip[$t] = both
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
        mov eax, [Word]
        add eax, ecx
        cmp eax, 100
        jne done
        mov ebx, [Word]
        sub ebx, ecx
        cmp ebx, 0
        je both
done:   jmp done
both:   jmp both
end thread_code
